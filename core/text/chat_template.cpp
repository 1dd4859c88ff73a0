// Puts a conversation into the variables that chat templates read.
#include "text/chat_template.hpp"

namespace minfer {

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string name) {
  MINFER_ASSIGN(auto parsed, jinja::Template::parse(source, std::move(name)));
  return ChatTemplate(std::move(parsed));
}

Result<std::string> ChatTemplate::render(const ChatInputs& inputs, const jinja::Limits& limits) const {
  jinja::Variables variables = {
      {"messages", inputs.messages},
      {"tools", inputs.tools},
      {"documents", inputs.documents},
      {"add_generation_prompt", jinja::Value(inputs.add_generation_prompt)},
  };
  if (inputs.bos_token) variables.emplace_back("bos_token", jinja::Value(*inputs.bos_token));
  if (inputs.eos_token) variables.emplace_back("eos_token", jinja::Value(*inputs.eos_token));
  variables.insert(variables.end(), inputs.extra.begin(), inputs.extra.end());
  std::tm now{};
  if (inputs.now) {
    now = *inputs.now;
  } else {
    const std::time_t t = std::time(nullptr);
    localtime_r(&t, &now);
  }
  return template_.render(variables, now, limits);
}

}  // namespace minfer
