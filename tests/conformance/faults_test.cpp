// The suite passes a scalar backend that is right, and names the case for each way in which it can be made wrong.
#include "faults.hpp"

#include "conformance/run.hpp"

namespace minfer::test {
namespace {

// Everything the plain backend supports: the suite's reference and this one are written apart.
TEST_CASE("conformance: a scalar backend without a fault passes") { check_all_pass(conformance({MINFER_TEST_FAULTY})); }

TEST_CASE("conformance: every planted fault fails the case that is made for it") {
  for (const FaultInfo& fault : kFaults) {
    if (fault.fault == Fault::kNone) continue;
    INFO("fault " << fault.name);
    const ProcessResult result = conformance({MINFER_TEST_FAULTY, "-o", "fault=" + std::string(fault.name), std::string(fault.filter)});
    INFO(result.out << result.err);
    CHECK(result.exit_code == 1);
    const size_t at = result.out.find("-o fault=" + std::string(fault.name) + " '" + std::string(fault.caught) + "' --seed 42: ");
    REQUIRE(at != std::string::npos);
    const std::string line = result.out.substr(at, result.out.find('\n', at) - at);
    CHECK(line.find(std::string(fault.says)) != std::string::npos);
    // The same cases pass without it.
    const ProcessResult right = conformance({MINFER_TEST_FAULTY, std::string(fault.filter)});
    INFO(right.out << right.err);
    CHECK(right.exit_code == 0);
  }
}

TEST_CASE("conformance: the printed command repeats a failure by itself") {
  const ProcessResult all = conformance({MINFER_TEST_FAULTY, "-o", "fault=tail_row", "matmul/f32", "--seed", "7"});
  const size_t at = all.out.find("FAILED ");
  REQUIRE(at != std::string::npos);
  const std::string line = all.out.substr(at, all.out.find('\n', at) - at);
  const size_t quote = line.find('\'');
  const std::string name = line.substr(quote + 1, line.find('\'', quote + 1) - quote - 1);
  const ProcessResult one = conformance({MINFER_TEST_FAULTY, "-o", "fault=tail_row", name, "--seed", "7"});
  CHECK(one.exit_code == 1);
  CHECK(one.out.find(line + "\n") != std::string::npos);
  CHECK(one.out.find("0 passed, 1 failed") != std::string::npos);
}

}  // namespace
}  // namespace minfer::test
