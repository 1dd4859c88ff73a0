// minfer-run on a real model: its text is that of the reference.
#include <catch2/catch.hpp>

#include "cli/programs/markov_model.hpp"

using namespace minfer::test;
using nlohmann::json;

namespace {

// Prompts whose greedy continuation has no near tie in its first tokens (margins above 0.6).
json greedy_run(const std::string& prompt, const json& reference, int n) {
  TempDir dir;
  write_file(dir.path() / "prompt.txt", reference["text"].get<std::string>());
  const auto result = minfer_run({"-q", "--json", "-m", model_file(kQwen2Model).string(), "-f", (dir.path() / "prompt.txt").string(),
                                  "--no-template", "--greedy", "--repeat-penalty", "1", "-n", std::to_string(n)});
  INFO(prompt << ": " << result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

json reference_of(const std::string& prompt) { return json::parse(read_file(data_dir() / ("logits_qwen2/" + prompt + ".json"))); }

}  // namespace

TEST_CASE("minfer-run: greedy tokens of a real model are the reference's and control tokens of a raw prompt count") {
  for (const std::string prompt : {"numbers", "fim"}) {
    const json reference = reference_of(prompt);
    const json result = greedy_run(prompt, reference, 20);
    CHECK(result["n_prompt"] == reference["n_tokens"]);
    const size_t n = result["tokens"].size();
    REQUIRE(n > 10);
    for (size_t i = 0; i < n; ++i) CHECK(result["tokens"][i] == reference["greedy"][i]["id"]);
    CHECK(result["builds"] == 2);
    CHECK(result["reuses"] == n - 2);
  }
}

TEST_CASE("minfer-run: a real model's template makes the prompt of the reference") {
  const json reference = reference_of("chat_haiku");
  const std::string text = reference["text"];
  const std::string system_mark = "<|im_start|>system\n", user_mark = "<|im_start|>user\n", end_mark = "<|im_end|>";
  const size_t system = text.find(system_mark) + system_mark.size(), user = text.find(user_mark) + user_mark.size();
  REQUIRE(text.find(system_mark) == 0);
  REQUIRE(user > user_mark.size());
  const auto trace = TempDir();
  const auto file = trace.path() / "tokens.txt";
  const auto result =
      minfer_run({"-q", "-m", model_file(kQwen2Model).string(), "-n", "0", "--system",
                  text.substr(system, text.find(end_mark, system) - system), text.substr(user, text.find(end_mark, user) - user)},
                 {}, {"MINFER_TOKEN_TRACE=" + file.string()});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::string expected;
  for (size_t i = 0; i < reference["ids"].size(); ++i) expected += std::to_string(i) + "\t" + reference["ids"][i].dump() + "\n";
  CHECK(read_file(file) == expected);
}
