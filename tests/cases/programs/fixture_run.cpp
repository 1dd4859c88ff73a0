#include "cases/programs/fixture_run.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace minfer::test {

std::string program(std::string_view name) { return (build_dir() / "bin" / name).string(); }

ProcessResult FixtureRun::run(std::vector<std::string> arguments, const std::vector<std::string>& env) const {
  const auto is_threads = [](const std::string& argument) { return argument == "-t" || argument == "--threads"; };
  if (std::none_of(arguments.begin(), arguments.end(), is_threads)) arguments.insert(arguments.begin(), {"-t", "1"});
  arguments.insert(arguments.begin(), {program("minfer-run"), "-m", path().string(), "-q"});
  return run_process(arguments, {}, env);
}

std::string FixtureRun::greedy(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"--greedy", "--repeat-penalty", "1"});
  const ProcessResult result = run(std::move(arguments));
  INFO(result.err);
  CHECK(result.exit_code == 0);
  return result.out;
}

ProcessResult run_limited(long kib, const std::string& arguments) {
  const std::string limit = MINFER_TEST_SANITIZED ? "" : "ulimit -v " + std::to_string(kib) + "; ";
  return run_process({"/bin/sh", "-c", limit + "exec " + program("minfer-run") + " " + arguments});
}

void check_refused(const ProcessResult& result, const std::vector<std::string>& words) {
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  CHECK(result.err.rfind("error: ", 0) == 0);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  for (const std::string& word : words) CHECK_THAT(result.err, Catch::Contains(word));
}

}  // namespace minfer::test
