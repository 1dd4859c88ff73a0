// minfer-run: command lines, configuration files, exit codes and messages.
#include <catch2/catch.hpp>

#include "cli/programs/markov_model.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;

namespace {

bool one_error_line(const std::string& err) {
  const size_t at = err.rfind("error: ");
  return at != std::string::npos && (at == 0 || err[at - 1] == '\n') && err.find('\n', at) == err.size() - 1;
}

void refuses(const ProcessResult& result, int code, const std::string& names) {
  INFO("stdout: " << result.out << "\nstderr: " << result.err);
  CHECK(result.exit_code == code);
  CHECK(result.out.empty());
  CHECK(one_error_line(result.err));
  CHECK_THAT(result.err, Contains(names));
}

}  // namespace

TEST_CASE("minfer-run: a bad command line ends with 2 and one line that names the fault") {
  refuses(minfer_run({"--nonsense", "x"}), 2, "--nonsense");
  refuses(minfer_run({"--seed", "18446744073709551616", "-m", "x", "x"}), 2, "between 0 and 18446744073709551615");
  refuses(minfer_run({"--parallel"}), 2, "--parallel");     // features that do not exist yet are unknown
  refuses(minfer_run({"--repeat", "1.0"}), 2, "--repeat");  // no guessing
  refuses(minfer_run({"--temp"}), 2, "temp");
  refuses(minfer_run({"hello"}), 2, "no model");
  refuses(minfer_run({"-m", "a", "-m", "b", "x"}), 2, "model");
  const std::vector<std::pair<std::string, std::string>> bad = {{"--temp", "warm"},
                                                                {"--temp", "-1"},
                                                                {"--top-p", "1.5"},
                                                                {"-n", "-2"},
                                                                {"--seed", "-1"},
                                                                {"--n-ctx", "0"},
                                                                {"--n-batch", "0"},
                                                                {"--kv-format", "int3"},
                                                                {"--top-k", "1.5"},
                                                                {"-t", "many"},
                                                                {"-t", "-5"},
                                                                {"--backend", ""},
                                                                {"--min-p", "nan"},
                                                                {"--backend-option", "x"},
                                                                {"--gpu-layers", "-3"},
                                                                {"--repeat-last-n", "-2"},
                                                                {"--typical", "1.5"},
                                                                {"--top-n-sigma", "-1"},
                                                                {"--xtc-probability", "2"},
                                                                {"--xtc-threshold", "0.6"},
                                                                {"--mirostat", "3"},
                                                                {"--mirostat-tau", "0"},
                                                                {"--mirostat-eta", "-1"},
                                                                {"--mirostat-m", "0"},
                                                                {"--dry-multiplier", "-1"},
                                                                {"--dry-base", "0.5"},
                                                                {"--dry-allowed-length", "0"},
                                                                {"--dry-penalty-last-n", "-2"},
                                                                {"--logit-bias", "65"}};
  for (const auto& [option, value] : bad) {
    INFO(option << " " << value);
    refuses(minfer_run({"-m", "a", option, value, "x"}), 2, value);
  }
}

TEST_CASE("minfer-run: exactly one prompt source is accepted") {
  const MarkovRun markov(MarkovModel::always({{'A', 8}}));
  write_file(markov.folder() / "prompt.txt", "x");
  refuses(markov.run({"-f", (markov.folder() / "prompt.txt").string(), "word"}), 2, "two prompts");
  refuses(markov.run({}), 2, "no prompt");  // standard input without a byte
  refuses(markov.run({"-f", (markov.folder() / "missing.txt").string()}), 1, "missing.txt");
}

TEST_CASE("minfer-run: a model that cannot be had ends with 1 and what to do") {
  TempDir dir;
  refuses(minfer_run({"-q", "-m", (dir.path() / "none.gguf").string(), "x"}), 1, "none.gguf");
  refuses(minfer_run({"-q", "-m", "none", "x"}, {}, {"MINFER_MODEL_DIR=" + dir.path().string()}), 1, "fetch-model");
  write_file(dir.path() / "bad.gguf", "GGUF");
  refuses(minfer_run({"-q", "-m", (dir.path() / "bad.gguf").string(), "x"}), 1, "bad.gguf");
}

TEST_CASE("minfer-run: a model is found by name in the model directory") {
  const MarkovRun markov(MarkovModel::always({{'A', 8}}));
  const auto result = minfer_run({"-q", "-m", "markov", "-n", "2", "x"}, {}, {"MINFER_MODEL_DIR=" + markov.folder().string()});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "AA");
}

TEST_CASE("minfer-run: help is on standard output and names every option's key") {
  const auto result = minfer_run({"--help"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  for (const char* part :
       {"-m, --model", "[sampling.temperature]", "[context.n_ctx]", "[generation.stop]", "--dump-graph-json", "MINFER_TIMING"})
    CHECK_THAT(result.out, Contains(part));
  for (const char* key : {"logit_bias",
                          "repeat_penalty",
                          "frequency_penalty",
                          "presence_penalty",
                          "repeat_last_n",
                          "dry_multiplier",
                          "dry_base",
                          "dry_allowed_length",
                          "dry_penalty_last_n",
                          "dry_sequence_breakers",
                          "top_k",
                          "typical_p",
                          "top_p",
                          "min_p",
                          "xtc_probability",
                          "xtc_threshold",
                          "top_n_sigma",
                          "temperature",
                          "mirostat",
                          "mirostat_tau",
                          "mirostat_eta",
                          "mirostat_m"})
    CHECK_THAT(result.out, Contains("[sampling." + std::string(key) + "]"));
  CHECK(minfer_run({"-h"}).out == result.out);
  const auto version = minfer_run({"-V"});
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.out, Catch::Matchers::StartsWith("minfer-run "));
}

TEST_CASE("minfer-run: a configuration file is refused with line and key") {
  const MarkovRun markov(MarkovModel::always({{'A', 8}}));
  const auto file = markov.folder() / "run.yaml";
  const auto with = [&](const std::string& yaml) {
    write_file(file, "model: markov.gguf\n" + yaml);
    return minfer_run({"-q", "--config", file.string(), "x"});
  };
  refuses(with("sampling: {temprature: 0}\n"), 1, "temperature");
  refuses(with("sampling:\n  top_k: many\n"), 1, "run.yaml:3:");
  refuses(with("context: {n_ctx: 8}\ncontext: {n_ctx: 9}\n"), 1, "context");
  refuses(with("sampling: {n_ctx: 256}\n"), 1, "n_ctx");
  refuses(with("generation: {stop: [&a x, *a]}\n"), 1, "run.yaml:2:");
  const auto option = with("backends: [{name: cpu, thread: 2}]\n");
  CHECK(option.exit_code == 1);
  CHECK_THAT(option.err, Contains("run.yaml:2:") && Contains("did you mean 'threads'"));
}

TEST_CASE("minfer-run: the file fills what the command line leaves open") {
  const MarkovRun markov(MarkovModel::always({{'A', 8}}));
  const auto file = markov.folder() / "run.yaml";
  write_file(file, "model: markov.gguf\r\ngeneration: {n_predict: 3}\r\nbackends: [{name: cpu, threads: 1}]\r\n");
  CHECK(minfer_run({"-q", "--config", file.string(), "x"}).out == "AAA");
  CHECK(minfer_run({"-q", "--config", file.string(), "-n", "5", "x"}).out == "AAAAA");
}

TEST_CASE("minfer-run: threads reach the backend and unknown names of backends and options are refused") {
  const MarkovRun markov(MarkovModel::always({{'A', 8}}));
  const std::string model = markov.path().string();
  CHECK_THAT(minfer_run({"-m", model, "-t", "3", "-n", "1", "x"}).err, Contains("3 threads"));
  CHECK_THAT(minfer_run({"-m", model, "--backend", "CPU", "--backend-option", "cpu.threads=2", "-n", "1", "x"}).err, Contains("2 threads"));
  CHECK_THAT(minfer_run({"-m", model, "--backend-option", "cpu.isa=baseline", "-n", "1", "x"}).err, Contains("baseline"));
  const auto file = markov.folder() / "threads.yaml";
  const auto with = [&](const std::string& threads, std::vector<std::string> more) {
    write_file(file, "model: markov.gguf\nbackends: [{name: cpu, threads: " + threads + "}]\n");
    more.insert(more.end(), {"--config", file.string(), "-n", "1", "x"});
    return minfer_run(more);
  };
  // Every way to say "auto" says the same, and on the command line it wins over the file.
  const std::string automatic = minfer_run({"-m", model, "-n", "1", "x"}).err;
  const std::string backend_line = automatic.substr(automatic.find("backend: cpu"), automatic.find(')') - automatic.find("backend: cpu"));
  for (const char* value : {"auto", "0", "-1"}) {
    INFO(value);
    CHECK_THAT(with(value, {}).err, Contains(backend_line));
    CHECK_THAT(with("37", {"-t", value}).err, Contains(backend_line));
  }
  for (const char* value : {"-5", "1025", "1.5", "two"}) {
    INFO(value);
    CHECK(with(value, {}).exit_code == 1);
    CHECK(with("1", {"-t", value}).exit_code == 2);
  }
  const auto option = minfer_run({"-q", "-m", model, "--backend-option", "cpu.thread=2", "x"});
  CHECK(option.exit_code == 1);
  CHECK_THAT(option.err, Contains("did you mean 'threads'"));
  const auto unused = minfer_run({"-q", "-m", model, "--backend-option", "gpu9.x=2", "x"});
  CHECK(unused.exit_code == 1);
  CHECK_THAT(unused.err, Contains("gpu9"));
  const auto backend = minfer_run({"-q", "-m", model, "--backend", "cpux", "x"});
  CHECK(backend.exit_code == 1);
  CHECK_THAT(backend.err, Contains("cpux") && Contains("cpu"));
}

TEST_CASE("minfer-run: a weight type that no backend supports is named with its tensor") {
  const MarkovRun markov(MarkovModel::always({{'A', 8}}));
  std::string bytes = read_file(markov.path());
  const std::string name = "output.weight";
  const size_t type = bytes.find(name) + name.size() + 4 + 2 * 8;  // behind the number of dims and the dims
  REQUIRE(bytes.compare(type, 4, std::string(4, '\0')) == 0);      // f32
  bytes[type] = 23;
  write_file(markov.path(), bytes);
  const auto result = markov.run({"-q", "x"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains("output.weight") && Contains("IQ4_XS") && Contains("23"));
}

TEST_CASE("minfer-run: names of files reach the terminal without what it obeys") {
  const std::string hostile = "/nonexistent/\x1b[31m\xC2\x9B\x07.gguf";
  for (const auto& result :
       {minfer_run({"-m", hostile, "x"}), minfer_run({"--config", hostile, "x"}), minfer_run({"-m", "x", "-f", hostile})}) {
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains("\\x1b[31m\\xc2\\x9b\\x07.gguf"));
    CHECK(result.err.find('\x1b') == std::string::npos);
    CHECK(result.err.find('\x07') == std::string::npos);
  }
}
