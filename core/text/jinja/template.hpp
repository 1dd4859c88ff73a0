// A parsed template: the engine's entry. Jinja 3.1 as chat templates use it (sandboxed, trim_blocks, lstrip_blocks, loop controls,
// tojson as transformers defines it, no autoescape).
// Beyond Jinja's immutable sandbox: lists and dicts may be changed (append, update), and the filter from_json exists. Narrower:
// integers have 64 bits; filters that give generators do all their work at once; the tags include, import, extends, block and
// autoescape are refused by name when parsed.
#pragma once

#include "text/jinja/interpreter.hpp"

namespace minfer::jinja {

class Template {
 public:
  // `name` stands in every error: "template 'name', line 3: filter 'foo' is not supported".
  static Result<Template> parse(std::string_view source, std::string name);

  // Const and free of shared state: one template may render on several threads, each with values of its own.
  Result<std::string> render(const Variables& variables, const std::tm& now, const Limits& limits = {}) const;

  const std::string& name() const { return name_; }

 private:
  Template(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string name_;
  Body body_;
};

}  // namespace minfer::jinja
