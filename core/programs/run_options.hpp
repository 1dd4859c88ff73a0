// What minfer-run was asked to do.
#pragma once

#include "programs/cli.hpp"
#include "programs/loading.hpp"

namespace minfer::programs {

struct RunArguments {
  Config config;
  BackendOverrides backends;
  std::string prompt;
  bool meta = false;
  bool quiet = false;
  bool json = false;
  bool conversation = false;  // the prompt, if there is one, is the first turn
  bool single_turn = false;
  bool multiline = false;
  std::string session;    // path; empty: none
  std::string dump_dot;   // path; empty: no dump
  std::string dump_json;  // path
  std::string info;       // not empty: print this and end (help, version)
};

// On failure *code is how the program ends.
Result<RunArguments> read_run_arguments(const std::vector<std::string>& arguments, int* code);

}  // namespace minfer::programs
