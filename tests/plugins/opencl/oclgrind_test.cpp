// A small model once more on Oclgrind, a simulator that reports data races, reads of memory that nobody wrote and accesses outside a
// buffer. It takes minutes for the other forms of weights: by hand, set what is set here and run test_opencl_small.
#include <catch2/catch.hpp>

#include "support/support.hpp"

using namespace minfer::test;

#ifdef MINFER_TEST_QWEN2
TEST_CASE("opencl/oclgrind: no kernel of a small model races or reads what was not written or reaches outside a buffer") {
  if (std::string_view(MINFER_TEST_OCLGRIND).empty()) skip("Oclgrind is not installed (Debian: oclgrind)");
  const TempDir vendors;
  write_file(vendors.path() / "oclgrind.icd", MINFER_TEST_OCLGRIND "\n");
  // Optimised code holds instructions that it cannot follow.
  const ProcessResult run = run_process(
      {(build_dir() / "tests/plugins/opencl/test_opencl_small").string(), "opencl/small: four tokens of one quantised model*"}, {},
      {"OCL_ICD_VENDORS=" + vendors.path().string(), "MINFER_TEST_OPENCL_PLATFORM=Oclgrind", "OCLGRIND_DATA_RACES=1",
       "OCLGRIND_UNINITIALIZED=1", "OCLGRIND_BUILD_OPTIONS=-cl-opt-disable"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("All tests passed") != std::string::npos);
  CHECK((run.out + run.err).find("Entity:") == std::string::npos);  // stands in every report of Oclgrind
}
#endif
