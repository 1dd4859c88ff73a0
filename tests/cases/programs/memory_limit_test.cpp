// minfer-run with less address space than it wants: an error in one line or the text, never a signal.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "cases/programs/fixture_run.hpp"

using namespace minfer::test;

namespace {

ProcessResult run_with_limit(long kib, const std::string& model) {
  return run_limited(kib, "-q -t 2 --greedy --n-ctx 512 -n 4 -m " + model + " ABC");
}

// The smallest limit of doubling steps with which it runs, and the exit codes of ten limits from 100 MB to there.
void check_limits(const std::string& model) {
  long enough = 128 << 10;
  while (run_with_limit(enough, model).exit_code != 0) {
    enough *= 2;
    REQUIRE(enough < 64L << 20);
  }
  std::set<int> codes;
  for (int step = 0; step < 10; ++step) {
    const long kib = (100 << 10) + (enough - (100 << 10)) * step / 9;
    const auto result = run_with_limit(kib, model);
    INFO(kib << " KiB: " << result.exit_code << ' ' << result.err);
    codes.insert(result.exit_code);
    if (result.exit_code == 0) {
      CHECK(result.err.empty());
      continue;
    }
    CHECK(result.exit_code == 1);
    CHECK(result.err.rfind("error: ", 0) == 0);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') >= 1);
  }
  CHECK(codes.count(0) == 1);
}

}  // namespace

TEST_CASE("cases: a tiny model in too little memory ends in one line") {
  const FixtureRun run(abc_model());
  check_limits(run.path().string());
}

TEST_CASE("cases: a real model in too little memory ends in one line") { check_limits(model_file(kQwen2Model).string()); }
