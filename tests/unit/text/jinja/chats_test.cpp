// The chat templates of real models over conversations with tools, tool calls and absent content.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "golden.hpp"

using namespace minfer;
using namespace minfer::jinja;

TEST_CASE("jinja/chats: real chat templates are rendered as by Jinja2", "[jinja]") {
  const auto rows = jinja_test::golden("chats.json");
  const auto& conversations = rows[0]["conversations"];
  std::map<std::string, Template> parsed;
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::string name = rows[i]["template"];
    if (!parsed.count(name)) {
      auto t = Template::parse(minfer::test::read_file(minfer::test::data_dir() / "templates" / name), name);
      if (!t.ok()) FAIL(t.error().text);
      parsed.emplace(name, *std::move(t));
    }
    jinja_test::Json variables = {{"tools", nullptr}, {"documents", nullptr}};
    variables.update(conversations[rows[i]["conversation"].get<size_t>()]);
    variables.update(rows[i]["variables"]);
    const auto result = parsed.at(name).render(jinja_test::variables_of(variables), jinja_test::fixed_time());
    const std::string wrong = jinja_test::difference(result, rows[i]);
    if (!wrong.empty()) FAIL_CHECK(name << " conversation " << rows[i]["conversation"] << " " << rows[i]["variables"] << "\n  " << wrong);
  }
  CHECK(parsed.size() >= 24);
}

TEST_CASE("jinja/chats: an assistant turn with tool calls renders the same with null, empty and absent content", "[jinja]") {
  const std::string name = "qwen2.5-coder-0.5b-instruct.jinja";
  const auto source = minfer::test::read_file(minfer::test::data_dir() / "templates" / name);
  const auto chat = ChatTemplate::parse(source, name);
  REQUIRE(chat.ok());
  std::set<std::string> texts;
  for (const char* content : {"", R"("content": null, )", R"("content": "", )"}) {
    ChatInputs inputs;
    inputs.messages = *parse_json(std::string(R"([{"role": "user", "content": "hi"}, {"role": "assistant", )") + content +
                                  R"("tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]}])");
    const auto out = chat->render(inputs);
    REQUIRE(out.ok());
    CHECK(out->find("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>") != std::string::npos);
    texts.insert(*out);
  }
  CHECK(texts.size() == 1);
}

TEST_CASE("jinja/chats: an absent bos_token is undefined and extra variables win", "[jinja]") {
  const auto chat =
      ChatTemplate::parse("{{ bos_token is defined }}{{ eos_token }}{{ tools is none }}{{ add_generation_prompt }}{{ mode }}", "x");
  REQUIRE(chat.ok());
  ChatInputs inputs;
  inputs.eos_token = "</s>";
  inputs.extra = {{"mode", Value("fast")}, {"add_generation_prompt", Value(7)}};
  CHECK(*chat->render(inputs) == "False</s>True7fast");
}
