// minfer-eval tokenize, detokenize and render: what needs a model's vocabulary or template, but not its weights.
#include <charconv>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/utf8.hpp"
#include "programs/chat_template_source.hpp"
#include "programs/eval_commands.hpp"
#include "programs/loading.hpp"
#include "programs/prompt_source.hpp"
#include "text/chat_template.hpp"
#include "text/jinja/json_value.hpp"

namespace minfer::programs {
namespace {

using Json = nlohmann::ordered_json;

Result<TextParts> open_model(const EvalArguments& arguments) {
  MINFER_ASSIGN(const std::filesystem::path path, find_model(arguments.config));
  return load_text_parts(path);
}

// One JSON object per line in, one out. Empty lines are skipped; an error names the line.
Status for_each_line(const std::function<Result<Json>(const Json&)>& answer) {
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty() || line == "\r") continue;
    const Json input = Json::parse(line, nullptr, false);
    const auto output = [&]() -> Result<Json> {
      if (!input.is_object()) return invalid("not a JSON object");
      return answer(input);
    }();
    if (!output.ok()) return output.error().in(text("line {}", number));
    std::cout << output->dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
    if (!std::cout) return io_error("standard output cannot be written");
  }
  return {};
}

Result<std::string> from_hex(const std::string& hex) {
  if (hex.size() % 2) return invalid("\"hex\" has an odd number of digits");
  std::string bytes;
  for (const char *at = hex.data(), *end = at + hex.size(); at < end; at += 2) {
    uint8_t byte = 0;
    if (const auto [next, error] = std::from_chars(at, at + 2, byte, 16); error != std::errc() || next != at + 2)
      return invalid("\"hex\" holds '{}', which is no byte", std::string_view(at, 2));
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kDigits[static_cast<uint8_t>(c) >> 4];
    hex += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return hex;
}

Result<std::string> input_bytes(const Json& input) {
  if (input.size() == 1 && input.contains("text") && input["text"].is_string()) return input["text"].get<std::string>();
  if (input.size() == 1 && input.contains("hex") && input["hex"].is_string()) return from_hex(input["hex"].get<std::string>());
  return invalid("expected {{\"text\": \"...\"}} or {{\"hex\": \"...\"}}");
}

Result<std::vector<TokenId>> input_ids(const Json& input) {
  if (input.size() != 1 || !input.contains("ids") || !input["ids"].is_array()) return invalid("expected {{\"ids\": [1, 2, 3]}}");
  std::vector<TokenId> ids;
  for (const Json& id : input["ids"]) {
    if (id.is_structured()) return invalid("\"ids\" holds a list or an object, which is no token id");  // of any depth: not shown
    if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX) return invalid("\"ids\" holds {}, which is no token id", id.dump());
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

}  // namespace

Status eval_tokenize(const EvalArguments& arguments) {
  MINFER_ASSIGN(const TextParts model, open_model(arguments));
  EncodeOptions options;
  options.parse_special = arguments.options.has("special");
  const bool bos = arguments.options.has("bos");
  return for_each_line([&](const Json& input) -> Result<Json> {
    MINFER_ASSIGN(const std::string bytes, input_bytes(input));
    MINFER_ASSIGN(std::vector<TokenId> ids, model.tokenizer.encode(bytes, options));
    if (bos) model.tokenizer.add_bos(ids);
    return Json{{"ids", ids}};
  });
}

Status eval_detokenize(const EvalArguments& arguments) {
  MINFER_ASSIGN(const TextParts model, open_model(arguments));
  return for_each_line([&](const Json& input) -> Result<Json> {
    MINFER_ASSIGN(const std::vector<TokenId> ids, input_ids(input));
    MINFER_ASSIGN(const std::string bytes, model.tokenizer.decode(ids));
    Json output{{"hex", to_hex(bytes)}};
    if (is_valid_utf8(bytes)) output["text"] = bytes;
    return output;
  });
}

Status eval_render(const EvalArguments& arguments) {
  MINFER_ASSIGN(const TextParts model, open_model(arguments));
  MINFER_ASSIGN(const TemplateSource source, find_chat_template(arguments.config.prompt, model.chat_template, template_folder()));
  if (source.text.empty()) return not_found("the model has no chat template; give one with --chat-template");
  MINFER_ASSIGN(const ChatTemplate chat_template, ChatTemplate::parse(source.text, source.name));
  MINFER_ASSIGN(const std::string bytes, read_all(0, "standard input"));
  const Json input = Json::parse(bytes, nullptr, false);
  if (!input.is_object() || !input.contains("messages") || !input["messages"].is_array())
    return invalid("standard input is no JSON object with a list \"messages\"");

  const Vocabulary& vocabulary = model.tokenizer.vocabulary();
  ChatInputs inputs;
  if (vocabulary.bos()) inputs.bos_token = vocabulary.bytes(*vocabulary.bos());
  if (vocabulary.eos()) inputs.eos_token = vocabulary.bytes(*vocabulary.eos());
  for (const auto& [key, json] : input.items()) {
    MINFER_ASSIGN(jinja::Value value, jinja::from_json(json));
    if (key == "messages") {
      inputs.messages = std::move(value);
    } else if (key == "tools") {
      inputs.tools = std::move(value);
    } else if (key == "documents") {
      inputs.documents = std::move(value);
    } else if (key == "add_generation_prompt") {
      if (!json.is_boolean()) return invalid("\"add_generation_prompt\" must be true or false");
      inputs.add_generation_prompt = json.get<bool>();
    } else {
      inputs.extra.emplace_back(key, std::move(value));
    }
  }
  MINFER_ASSIGN(const std::string rendered, chat_template.render(inputs));
  std::cout << rendered << std::flush;
  return std::cout ? Status() : io_error("standard output cannot be written");
}

}  // namespace minfer::programs
