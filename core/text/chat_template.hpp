// The chat template of a model: conversation in, prompt text out. A thin layer over the template engine that knows which
// variables chat templates expect (messages, tools, documents, add_generation_prompt, bos_token, eos_token).
#pragma once

#include "text/jinja/template.hpp"

namespace minfer {

struct ChatInputs {
  jinja::Value messages;   // a list of dicts; see jinja/json_value.hpp for JSON
  jinja::Value tools;      // a list of dicts, or None
  jinja::Value documents;  // a list of dicts, or None
  bool add_generation_prompt = true;
  std::optional<std::string> bos_token;  // absent: undefined in the template
  std::optional<std::string> eos_token;
  jinja::Variables extra;      // more variables; they win over those above
  std::optional<std::tm> now;  // for strftime_now; absent: the local time
};

// Immutable; may render on several threads at once.
class ChatTemplate {
 public:
  // A syntax error or an unsupported construct is an error that names the template, the line and the construct.
  static Result<ChatTemplate> parse(std::string_view source, std::string name);

  // What the template itself refuses (raise_exception) is an error with its message, code kInvalidArgument.
  Result<std::string> render(const ChatInputs& inputs, const jinja::Limits& limits = {}) const;

  const std::string& name() const { return template_.name(); }

 private:
  explicit ChatTemplate(jinja::Template t) : template_(std::move(t)) {}
  jinja::Template template_;
};

}  // namespace minfer
