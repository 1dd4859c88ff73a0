// minfer-bench: tests, formats and statistics. Its figures are the machine's.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <regex>
#include <thread>

#include "cli/programs/markov_model.hpp"

using namespace minfer::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

ProcessResult bench(const MarkovRun& markov, std::vector<std::string> arguments) {
  if (std::find(arguments.begin(), arguments.end(), "-t") == arguments.end()) arguments.insert(arguments.begin(), {"-t", "2"});
  arguments.insert(arguments.begin(), {program("minfer-bench"), "-m", markov.path().string(), "--warmup", "0"});
  return run_process(arguments);
}

}  // namespace

TEST_CASE("minfer-bench: the JSON rows hold every sample with their mean and deviation") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const auto result = bench(markov, {"-p", "32", "-n", "8", "-d", "20", "-r", "4", "-o", "json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json rows = json::parse(result.out);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["test"] == "pp32 @ d20");
  CHECK(rows[1]["test"] == "tg8 @ d20");
  for (const json& row : rows) {
    CHECK(row["model"] == "markov");
    CHECK(row["threads"] == 2);
    CHECK(row["backend"] == "cpu");
    const auto samples = row["samples_ts"].get<std::vector<double>>();
    REQUIRE(samples.size() == 4);
    double mean = 0, squares = 0;
    for (const double s : samples) mean += s / 4;
    for (const double s : samples) squares += (s - mean) * (s - mean);
    CHECK(row["ts_mean"].get<double>() == Approx(mean));
    CHECK(row["ts_stddev"].get<double>() == Approx(std::sqrt(squares / 3)));
    CHECK(mean > 0);
  }
}

TEST_CASE("minfer-bench: lists of tokens, depths and threads give a row for each combination, with the threads it ran on") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const auto result = bench(markov, {"-t", "1,3", "-p", "4,0,2", "-n", "3", "-d", "0,5", "-r", "1", "-o", "json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json rows = json::parse(result.out);
  std::vector<std::string> found;
  for (const json& row : rows) found.push_back(std::to_string(row["threads"].get<int>()) + " " + row["test"].get<std::string>());
  std::vector<std::string> expected;
  for (const char* threads : {"1", "3"})
    for (const char* test : {"pp4", "pp2", "tg3", "pp4 @ d5", "pp2 @ d5", "tg3 @ d5"})
      expected.push_back(std::string(threads) + " " + test);
  CHECK(found == expected);
  CHECK_THAT(result.err, Contains("cpu (1 thread,") && Contains("cpu (3 threads,"));  // as the backend was opened
  const auto md = bench(markov, {"-t", "auto,2", "-p", "2", "-n", "0", "-r", "1"});
  CHECK_THAT(md.out, Contains("| cpu | auto | pp2 |") && Contains("| cpu | 2 | pp2 |"));
}

TEST_CASE("minfer-bench: --clock prints the clock of a core, without a model") {
  const auto result = run_process({program("minfer-bench"), "--clock"});
  CHECK(result.exit_code == 0);
  CHECK(std::regex_match(result.out, std::regex("\\d+\\.\\d{4}\n")));
#if defined(__x86_64__)
  CHECK(std::stod(result.out) > 0.2);
  CHECK(std::stod(result.out) < 20);
#endif
}

TEST_CASE("minfer-bench: tables in Markdown and CSV have the documented columns") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const auto md = bench(markov, {"-p", "4", "-n", "0", "-r", "1"});
  CHECK_THAT(md.out, Catch::Matchers::StartsWith("| model | size | params | backend | threads | test | t/s |") && Contains("| pp4 |") &&
                         Contains("± 0.00 |"));
  const auto csv = bench(markov, {"-p", "0", "-n", "4", "-r", "2", "-o", "csv"});
  CHECK_THAT(csv.out, Catch::Matchers::StartsWith(
                          "\"model\",\"size\",\"params\",\"backend\",\"threads\",\"test\",\"ts_mean\",\"ts_stddev\"\n\"markov\",") &&
                          Contains("\"tg4\""));
}

TEST_CASE("minfer-bench: what cannot be measured is refused") {
  MarkovModel model = MarkovModel::always({{'a', 8}});
  model.context = 64;
  const MarkovRun markov(model);
  CHECK(bench(markov, {"-p", "0", "-n", "0"}).exit_code == 2);
  CHECK(bench(markov, {"-p", "0,0", "-n", "0"}).exit_code == 2);
  for (const char* option : {"-p", "-n", "-d", "-t"})
    for (const char* list : {"2,", ",2", "2;4", "2,x", ""}) {
      INFO(option << " '" << list << "'");
      CHECK(bench(markov, {option, list}).exit_code == 2);
    }
  CHECK(bench(markov, {"-r", "0"}).exit_code == 2);
  CHECK(bench(markov, {"-o", "xml"}).exit_code == 2);
  CHECK(bench(markov, {"word"}).exit_code == 2);
  const auto too_long = bench(markov, {"-p", "100", "-n", "0"});
  CHECK(too_long.exit_code == 1);
  CHECK_THAT(too_long.err, Contains("100") && Contains("64"));
  CHECK(bench(markov, {"-p", "60", "-n", "4", "-r", "1"}).exit_code == 0);
  const auto limited = bench(markov, {"-p", "32", "-n", "0", "--n-ctx", "31"});  // a limit of the user's is kept
  CHECK(limited.exit_code == 1);
  CHECK_THAT(limited.err, Contains("32") && Contains("31"));
}

TEST_CASE("minfer-bench: threads that nobody chose are the backend's choice and called so") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const std::vector<std::string> command = {
      program("minfer-bench"), "-m", markov.path().string(), "-p", "2", "-n", "0", "-r", "1", "--warmup", "0", "-o"};
  auto csv = command, js = command;
  csv.emplace_back("csv");
  js.emplace_back("json");
  CHECK_THAT(run_process(csv).out, Contains("\"cpu\",\"auto\",\"pp2\""));
  CHECK(json::parse(run_process(js).out)[0]["threads"] == "auto");
}

TEST_CASE("minfer-bench: threads of the configuration file count unless the command line gives others") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const auto file = markov.folder() / "bench.yaml";
  write_file(file, "backends: [{name: cpu, threads: 3}]\n");
  const auto threads = [&](std::vector<std::string> more) {
    more.insert(more.begin(), program("minfer-bench"));
    more.insert(more.end(),
                {"-m", markov.path().string(), "--config", file.string(), "-p", "2", "-n", "0", "-r", "1", "--warmup", "0", "-o", "csv"});
    return run_process(more);
  };
  const auto from_file = threads({});
  CHECK_THAT(from_file.out, Contains("\"cpu\",\"3\",\"pp2\""));
  CHECK_THAT(from_file.err, Contains("3 threads"));
  const auto given = threads({"-t", "1"});
  CHECK_THAT(given.out, Contains("\"cpu\",\"1\",\"pp2\""));
  CHECK_THAT(given.err, Contains("1 thread,"));
  CHECK_THAT(threads({"--backend-option", "cpu.threads=4"}).err, Contains("4 threads"));
}

TEST_CASE("minfer-bench: many more threads than CPUs are not started, which is said") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const auto result = bench(markov, {"-p", "2", "-n", "0", "-r", "1", "-t", "1000", "-o", "csv"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  std::smatch said;
  const std::regex notice("threads: (\\d+) of 1000 are started, this process may use (\\d+) CPUs");
  REQUIRE(std::regex_search(result.err, said, notice));
  CHECK(std::stoul(said[1]) == 4 * std::stoul(said[2]));
  CHECK(std::stoul(said[2]) <= std::thread::hardware_concurrency());
  CHECK_THAT(result.err, Contains("cpu (" + said[1].str() + " threads"));
}

TEST_CASE("minfer-bench: --probe gives speeds as bytes and products of the model, beside the machine's best") {
  const MarkovRun markov(MarkovModel::always({{'a', 8}}));
  const auto result = bench(markov, {"--probe", "-p", "6", "-n", "8", "-d", "20", "-r", "2", "--n-batch", "4", "-o", "json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json rows = json::parse(result.out);
  // One layer of width 512 with a KV head of 64 and a feed-forward of 32, Q8_0 (34 bytes for 32 weights); an F32 output of 264 rows.
  const double kv = 512 * 2 * 64, others = 512 * (2 * 512 + 3 * 32), output = 512 * 264;
  const double layer_bytes = (kv + others) / 32 * 34, output_bytes = output * 4;
  const double position_bytes = 2 * 64 * 2;  // K and V in f16
  const auto per_token = [](const json& row, const char* field) { return row[field].get<double>() / row["ts_mean"].get<double>(); };
  const json& pp = rows[0];
  const json& tg = rows[1];
  // 6 tokens in steps of 4 and 2: for all of them K and V, for the last alone the rest of this last layer.
  CHECK(per_token(pp, "gb_s") * 1e9 == Approx((kv / 32 * 34 + layer_bytes + output_bytes + 26 * position_bytes) / 6).epsilon(1e-6));
  CHECK(per_token(tg, "gb_s") * 1e9 == Approx(layer_bytes + output_bytes + 24.5 * position_bytes).epsilon(1e-6));
  CHECK(tg["gb_s_best"] > 0.1);
  if (const double hz = tg["clock_ghz"].get<double>() * 1e9; hz > 0) {
    CHECK(per_token(pp, "macs_per_cycle") * hz * 2 == Approx(kv + (others + output) / 6).epsilon(1e-6));
    CHECK(per_token(tg, "macs_per_cycle") * hz * 2 == Approx(kv + others + output).epsilon(1e-6));
  }
  CHECK(tg["macs_per_cycle_bound"] == 0);  // F32 products have no place in an integer bound
  const auto md = bench(markov, {"--probe", "-p", "0", "-n", "2", "-r", "1"});
  CHECK_THAT(md.out, Contains("| GB/s (of best) | MAC/cycle/core (of bound) |") && Contains(" %) |") && Contains("at its best, 2 threads"));
}
