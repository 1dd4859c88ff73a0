// What surrounds a run: configuration files, locales, plugin folders.
#include <catch2/catch.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cases/programs/fixture_run.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;

namespace {

ProcessResult run_with(const FixtureRun& run, std::string_view yaml, std::vector<std::string> arguments,
                       const std::vector<std::string>& env = {}) {
  const auto config = run.folder() / "c.yaml";
  write_file(config, yaml);
  arguments.insert(arguments.begin(), {program("minfer-run"), "--config", config.string(), "-q"});
  return run_process(arguments, {}, env);
}

std::string times(const std::string& unit, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += unit;
  return out;
}

const FixtureModel& two_letters() {
  static const FixtureModel model = markov_model("llama", {{-1, {{'A', 2.0f}, {'B', 1.625f}}}});
  return model;
}

}  // namespace

TEST_CASE("cases: a configuration with CRLF is the same as one with LF") {
  const FixtureRun run(abc_model());
  for (const char* end : {"\n", "\r\n"}) {
    const std::string e = end;
    CHECK(
        run_with(run, "model: model.gguf" + e + "sampling:" + e + "  temperature: 0" + e + "generation: {n_predict: 2}" + e, {"ABC"}).out ==
        "DEFG");
  }
}

TEST_CASE("cases: a configuration with a wrong or repeated key ends before any model is loaded") {
  const FixtureRun run(abc_model());
  const struct {
    const char* yaml;
    std::vector<std::string> words;
  } cases[] = {{"context:\n  n_ctx: 256\n  n_ctx: 512\n", {"n_ctx", ":4"}},
               {"sampling:\n  temprature: 0\n", {"temprature", "temperature", ":3"}},
               {"sampling: {n_ctx: 256}\n", {"n_ctx", ":2"}},
               {"Model: x.gguf\n", {"Model", "model", ":2"}}};
  for (const auto& c : cases) {
    INFO(c.yaml);
    // The model does not exist: a run that got as far as loading would say so instead.
    const auto result = run_with(run, std::string("model: /nonexistent/model.gguf\n") + c.yaml, {"ABC"});
    CHECK(result.exit_code == 1);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, Contains("error: ") && !Contains("nonexistent"));
    for (const std::string& word : c.words) CHECK_THAT(result.err, Contains(word));
  }
}

TEST_CASE("cases: hostile and empty configurations end at once in little memory") {
  std::string aliases = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'i'; ++c) {
    const std::string last(1, static_cast<char>(c - 1));
    aliases += std::string(1, c) + ": &" + c + " [" + times("*" + last + ", ", 8) + "*" + last + "]\n";
  }
  const struct {
    const char* what;
    std::string yaml;
  } cases[] = {{"aliases", aliases + "generation: {stop: *i}\n"},
               {"nested", times("[", 100000)},
               {"empty", ""},
               {"only a mark", "---\n"},
               {"a list", "- a\n- b\n"},
               {"two documents", "model: a\n---\nmodel: b\n"},
               {"tab", "context:\n\tn_ctx: 4\n"},
               {"100 MB of comments", times("# foo\n", 17 << 20)},
               {"tag", "model: !!python/object:x y\n"}};
  const FixtureRun run(abc_model());
  for (const auto& c : cases) {
    INFO(c.what);
    const auto config = run.folder() / "hostile.yaml";
    write_file(config, c.yaml);
    const auto start = std::chrono::steady_clock::now();
    const auto result = run_limited(256 << 10, "-q --config " + config.string() + " ABC");
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    INFO(result.err);
    CHECK((result.exit_code == 1 || result.exit_code == 2));
    CHECK(result.out.empty());
    CHECK(result.err.rfind("error: ", 0) == 0);
    CHECK(result.err.size() < 1000);
  }
}

TEST_CASE("cases: a locale with decimal commas changes nothing") {
  const TempDir locales;
  const auto built = run_process({"localedef", "-i", "de_DE", "-f", "UTF-8", (locales.path() / "de_DE.UTF-8").string()});
  if (built.exit_code != 0) skip("localedef cannot build de_DE.UTF-8 here: " + built.err);
  const FixtureRun run(two_letters());
  const std::string yaml = "model: model.gguf\nsampling: {temperature: 0.8, repeat_penalty: 1.0}\ngeneration: {n_predict: 64}\n";
  // The preloaded library asks for the locale of the environment, as some driver or plugin of a user may.
  const std::vector<std::string> german = {"LC_ALL=de_DE.UTF-8", "LOCPATH=" + locales.path().string(),
                                           "LD_PRELOAD=" MINFER_TEST_SETLOCALE_LIBRARY};
  const auto here = run_with(run, yaml, {"--json", "X"}, {"LC_ALL=C"});
  const auto there = run_with(run, yaml, {"--json", "X"}, german);
  REQUIRE(here.exit_code == 0);
  REQUIRE(there.exit_code == 0);
  const auto a = nlohmann::json::parse(here.out), b = nlohmann::json::parse(there.out);
  CHECK(a["text"] == b["text"]);
  CHECK_THAT(a["text"].get<std::string>(), Contains("A") && Contains("B"));  // at a temperature of 0 there is no B
  CHECK(b["decode_ts"].is_number_float());
  CHECK(run_with(run, yaml, {"--temp", "0", "X"}, german).out == std::string(64, 'A'));
  const auto eval =
      run_process({program("minfer-eval"), "logits", "-m", run.path().string(), "-t", "1", "--ids", "88", "--top", "2"}, {}, german);
  INFO(eval.err);
  REQUIRE(eval.exit_code == 0);
  CHECK(nlohmann::json::parse(eval.out)["rows"][0]["top"][1][1] == 1.625);
  // And the locale was really another one.
  CHECK(run_process({"/usr/bin/printf", "%.1f", "1"}, {}, german).out == "1,0");
}

TEST_CASE("cases: a backend that cannot be used is an error when it is named and no hindrance when it is not") {
  const FixtureRun run(abc_model());
  const auto plugins = run.folder() / "plugins";
  std::filesystem::create_directory(plugins);
  const std::string manifest = read_file(build_dir() / "bin/plugins/minfer-backend-cpu.plugin.yaml");
  const auto add = [&](const std::string& name) {
    std::string text = manifest;
    text.replace(text.find("\"cpu\""), 5, "\"" + name + "\"");
    text.replace(text.find("minfer-backend-cpu.so"), 21, name + ".so");
    write_file(plugins / ("minfer-backend-" + name + ".plugin.yaml"), text);
  };
  add("text");
  write_file(plugins / "text.so", "this is no library\n");
  add("folder");
  std::filesystem::create_directory(plugins / "folder.so");
  const std::string dirs = "plugins: {dirs: [plugins]}\nsampling: {temperature: 0}\nmodel: model.gguf\n";
  for (const char* name : {"text", "folder"}) {
    const auto result = run_with(run, dirs + "backends: [{name: " + name + "}]\n", {"ABC"});
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, Contains("error: ") && Contains(std::string("'") + name + "'") && Contains((plugins / name).string() + ".so"));
  }
  CHECK(run_with(run, dirs + "backends: [{name: cpu}]\n", {"ABC"}).out == kAbcText);
  CHECK(run_with(run, dirs, {"ABC"}).out == kAbcText);
}
