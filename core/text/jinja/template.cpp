// Parses once, renders often; puts the template's name in front of errors.
#include "text/jinja/template.hpp"

#include "base/utf8.hpp"
#include "text/jinja/parser.hpp"

namespace minfer::jinja {

namespace {

// One line, whatever the template's text puts into the message.
Error named(std::string_view name, const Error& error) { return Error{error.code, text("template '{}', {}", name, one_line(error.text))}; }

}  // namespace

Result<Template> Template::parse(std::string_view source, std::string name) {
  auto body = parse_template(source);
  if (!body.ok()) return named(name, body.error());
  return Template(std::move(name), *std::move(body));
}

Result<std::string> Template::render(const Variables& variables, const std::tm& now, const Limits& limits) const {
  Runtime rt(limits, now);
  Interpreter interpreter(rt);
  auto out = interpreter.render(body_, variables);
  if (!out.ok()) return named(name_, out.error());
  return out;
}

}  // namespace minfer::jinja
