#include "conformance/run.hpp"

#include "opencl_run.hpp"

namespace minfer::test {
namespace {

TEST_CASE("conformance: the OpenCL backend passes") {
  const BackendSpec spec = opencl();  // or skipped
  std::vector<std::string> arguments{MINFER_TEST_OPENCL, "--strict"};
  for (const auto& [key, value] : spec.request.options) {
    arguments.push_back("-o");
    arguments.push_back(key + "=" + value);
  }
  check_all_pass(conformance(arguments));
}

}  // namespace
}  // namespace minfer::test
