// Rotation, KV cache, instruction sets and threads through minfer-run, on models whose text shows any fault.
#include <catch2/catch.hpp>
#include <chrono>

#include "cases/programs/fixture_run.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;

TEST_CASE("cases: the text follows what the KV cache holds, in every KV format and batch size") {
  for (const char* arch : {"llama", "qwen2"}) {
    const FixtureRun run(history_model(arch));
    for (const char* format : {"f32", "f16", "q8_0"}) CHECK(run.greedy({"--kv-format", format, "-n", "6", "aabbb"}) == "bbbbbb");
    for (const char* batch : {"1", "2", "7"}) CHECK(run.greedy({"--n-batch", batch, "-n", "6", "ccaabbb"}) == "bbbbbb");
  }
}

TEST_CASE("cases: scores far beyond the range of a half stay finite in every KV format") {
  const FixtureRun run(history_model("qwen2", 256));  // q.k is 131072, scaled 16384
  for (const char* format : {"f32", "f16", "q8_0"}) CHECK(run.greedy({"--kv-format", format, "-n", "6", "aabbb"}) == "bbbbbb");
}

TEST_CASE("cases: a pattern is copied at any position, batch size and thread count") {
  for (const char* arch : {"llama", "qwen2"}) {
    const FixtureRun run(copy8_model(arch));
    CHECK(run.greedy({"-n", "24", "cdefghij"}) == "cdefghijcdefghijcdefghij");
    const std::string far = std::string(700, 'z') + "cdefghij";
    for (const char* batch : {"1", "7", "64", "512"})
      CHECK(run.greedy({"--n-batch", batch, "-n", "24", far}) == "cdefghijcdefghijcdefghij");
    CHECK(run.greedy({"-t", "3", "--kv-format", "q8_0", "-n", "16", far}) == "cdefghijcdefghij");
  }
}

TEST_CASE("cases: every instruction set prints the same text and one that is missing is refused") {
  const FixtureRun run(abc_model());
  for (const char* isa : {"baseline", "avx2", "avx512", "avx512vnni"}) {
    INFO(isa);
    const auto result = run.run({"--greedy", "--repeat-penalty", "1", "--backend-option", std::string("cpu.isa=") + isa, "ABC"});
    if (result.exit_code == 0) {
      CHECK(result.out == kAbcText);
    } else {
      CHECK(std::string(isa) != "baseline");
      CHECK(result.exit_code == 1);
      CHECK(result.out.empty());
      CHECK_THAT(result.err, Contains("this machine does not have") && Contains(isa));
    }
  }
  CHECK_THAT(run.run({"--backend-option", "cpu.isa=avx9", "ABC"}).err, Contains("'avx9' is none of"));
}

TEST_CASE("cases: more threads than CPUs give the same text and no standstill") {
  const FixtureRun run(copy8_model("llama"));
  const auto timed = [&](const std::string& threads) {
    const auto start = std::chrono::steady_clock::now();
    const auto result = run_process({"taskset", "-c", "0", program("minfer-run"), "-m", run.path().string(), "-q", "--greedy",
                                     "--repeat-penalty", "1", "-t", threads, "-n", "64", "cdefghij"});
    CHECK(result.exit_code == 0);
    CHECK(result.out.size() == 64);
    CHECK(result.out.substr(0, 16) == "cdefghijcdefghij");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double one = timed("1");
  timed("2");
  CHECK(timed("64") < 3 * one + 2);  // the two seconds are for a busy machine; a standstill takes minutes
}

TEST_CASE("cases: 0 and -1 threads mean the default") {
  const FixtureRun run(abc_model());
  for (const char* threads : {"0", "-1"}) CHECK(run.greedy({"-t", threads, "ABC"}) == kAbcText);
}

TEST_CASE("cases: thread counts that mean nothing are refused by option and value") {
  const FixtureRun run(abc_model());
  for (const char* threads : {"-5", "1000000", "1.5"}) {
    INFO(threads);
    const auto option = run.run({"--threads", threads, "ABC"});
    CHECK(option.exit_code == 2);
    CHECK_THAT(option.err, Contains("threads") && Contains(threads));
    const auto config = run.folder() / "c.yaml";
    write_file(config, "model: model.gguf\nbackends: [{name: cpu, threads: " + std::string(threads) + "}]\n");
    const auto file = run_process({program("minfer-run"), "--config", config.string(), "-q", "ABC"});
    CHECK(file.exit_code == 1);
    CHECK_THAT(file.err, Contains("threads") && Contains(threads));
  }
}

TEST_CASE("cases: fifty runs in a row end cleanly") {
  const FixtureRun run(abc_model());
  int good = 0;
  for (int i = 0; i < 50; ++i) good += run.greedy({"-t", "4", "ABC"}) == kAbcText;
  CHECK(good == 50);
}

TEST_CASE("cases: a prompt that does not fit is refused with both numbers and is never cut") {
  FixtureModel model = markov_model("llama", {{-1, {{'a', 8.0f}}}});
  model.set("llama.context_length", uint32_t{256});
  const FixtureRun run(model);
  check_refused(run.run({std::string(257, 'X')}), {"257", "256"});
  CHECK(run.greedy({"-n", "-1", std::string(256, 'X')}).empty());
  CHECK(run.greedy({"-n", "-1", std::string(255, 'X')}) == "a");
  CHECK(run.greedy({"-n", "-1", std::string(10, 'X')}) == std::string(246, 'a'));
  const auto negative = run.run({"-n", "-2", "X"});
  CHECK(negative.exit_code != 0);
  CHECK_THAT(negative.err, Contains("-2"));
}
