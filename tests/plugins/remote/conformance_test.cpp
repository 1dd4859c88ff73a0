// The suite under memory that the host cannot touch and work that is done as late as it may.
#include "conformance/run.hpp"

namespace minfer::test {
namespace {

TEST_CASE("conformance: a backend with closed memory and late work passes") {
  check_all_pass(conformance({MINFER_TEST_REMOTE, "--strict"}));
}

}  // namespace
}  // namespace minfer::test
