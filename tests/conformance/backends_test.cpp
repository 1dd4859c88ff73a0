// The backends of the tree pass the conformance suite.
#include "conformance/run.hpp"

namespace minfer::test {
namespace {

#ifdef MINFER_TEST_CPU
TEST_CASE("conformance: the cpu backend passes with its baseline kernels") {
  check_all_pass(conformance({MINFER_TEST_CPU, "-o", "isa=baseline", "-o", "threads=2", "--strict"}));
}

TEST_CASE("conformance: the cpu backend passes with its AVX2 kernels") {
  const ProcessResult result = conformance({MINFER_TEST_CPU, "-o", "isa=avx2", "-o", "threads=2", "--strict"});
  if (result.err.find("this machine does not have avx2") != std::string::npos) skip("this machine does not have AVX2");
  check_all_pass(result);
}
#endif

#ifdef MINFER_TEST_NULL
TEST_CASE("conformance: a backend that supports nothing fails nothing") {
  const ProcessResult result = conformance({MINFER_TEST_NULL});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  // It rightly denies what nobody may support; of everything else nothing ran.
  CHECK(result.out.find("\n15 passed, 0 failed, ") != std::string::npos);
  CHECK(result.out.find("\ndeny               15 ") != std::string::npos);
}

TEST_CASE("conformance: a filter without a match, a bad option and an unknown backend are told apart") {
  CHECK(conformance({MINFER_TEST_NULL, "no/such/case"}).exit_code == 2);
  CHECK(conformance({MINFER_TEST_NULL, "--option", "threads"}).exit_code == 2);
  CHECK(conformance({"there_is_no_such_backend"}).exit_code == 1);
  CHECK(conformance({MINFER_TEST_NULL, "matmul", "-o", "unknown=1"}).exit_code == 1);
}
#endif

}  // namespace
}  // namespace minfer::test
