// Running minfer-conformance as a program.
#pragma once

#include <catch2/catch.hpp>

#include "support/support.hpp"

namespace minfer::test {

inline ProcessResult conformance(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), (build_dir() / "bin/minfer-conformance").string());
  return run_process(arguments);
}

inline void check_all_pass(const ProcessResult& result) {
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find(" passed, 0 failed, ") != std::string::npos);
  CHECK(result.out.find("\n0 passed") == std::string::npos);
}

}  // namespace minfer::test
