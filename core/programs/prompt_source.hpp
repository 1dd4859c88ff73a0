// Where the prompt comes from: words of the command line, a file, or standard input. Exactly one of them.
#pragma once

#include "programs/cli.hpp"

namespace minfer::programs {

// On failure *code is how the program ends. An empty prompt is one too; standard input without a byte is none.
Result<std::string> read_prompt(const ParsedOptions& parsed, int* code);

// All bytes up to the end. `name` stands in messages.
Result<std::string> read_all(int file, std::string_view name);
Result<std::string> read_whole_file(const std::string& path);

}  // namespace minfer::programs
