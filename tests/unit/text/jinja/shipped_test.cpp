// The templates of configs/templates: what each makes of a short conversation, written down by hand from the formats of those models.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "golden.hpp"

using namespace minfer;

namespace {

const std::filesystem::path kTemplates = MINFER_TEMPLATES_DIR;

std::string rendered(const std::string& name, const std::string& messages, bool add_generation_prompt = true) {
  const auto chat = ChatTemplate::parse(test::read_file(kTemplates / (name + ".jinja")), name);
  if (!chat.ok()) FAIL(chat.error().text);
  ChatInputs inputs;
  inputs.messages = *jinja::parse_json(messages);
  inputs.add_generation_prompt = add_generation_prompt;
  inputs.bos_token = "<s>";
  inputs.eos_token = "</s>";
  const auto out = chat->render(inputs);
  return out.ok() ? *out : "error: " + out.error().text;
}

const std::string kTalk = R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi {{ x }}"},
                              {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Bye"}])";

}  // namespace

TEST_CASE("configs/templates: each writes the format of its models", "[jinja]") {
  const std::map<std::string, std::string> expected = {
      {"chatml",
       "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi {{ x }}<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n"
       "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"},
      {"llama3",
       "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi {{ x "
       "}}<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"mistral", "<s>[INST] Be brief.\n\nHi {{ x }}[/INST] Hello.</s>[INST] Bye[/INST]"},
      {"gemma",
       "<s><start_of_turn>user\nBe brief.\n\nHi {{ x }}<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n"
       "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"},
      {"phi3",
       "<|system|>\nBe brief.<|end|>\n<|user|>\nHi {{ x }}<|end|>\n<|assistant|>\nHello.<|end|>\n<|user|>\nBye<|end|>\n<|assistant|>\n"},
      {"deepseek", "<s>Be brief.<｜User｜>Hi {{ x }}<｜Assistant｜>Hello.<｜end▁of▁sentence｜><｜User｜>Bye<｜Assistant｜>"},
      {"zephyr", "<|system|>\nBe brief.</s>\n<|user|>\nHi {{ x }}</s>\n<|assistant|>\nHello.</s>\n<|user|>\nBye</s>\n<|assistant|>\n"},
  };
  size_t shipped = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTemplates)) {
    CHECK(expected.count(entry.path().stem().string()) == 1);
    ++shipped;
  }
  CHECK(shipped == expected.size());
  for (const auto& [name, text] : expected) {
    INFO(name);
    CHECK(rendered(name, kTalk) == text);
    // Without a generation prompt nothing follows the last message; no content is an empty one.
    const std::string two = R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": null}])";
    CHECK(rendered(name, two, false).find("error") == std::string::npos);
    CHECK(rendered(name, two, false).find("None") == std::string::npos);
  }
  CHECK(rendered("chatml", R"([{"role": "user", "content": "a"}])", false) == "<|im_start|>user\na<|im_end|>\n");
  CHECK(rendered("mistral", R"([{"role": "tool", "content": "a"}])") ==
        "error: template 'mistral', line 13: the role 'tool' is none of system, user and assistant");
}
