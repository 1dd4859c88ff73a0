// minfer-run --cnv: turns read from a terminal or a pipe, commands that begin with "/", a session file. Replies go to standard output,
// everything else to standard error.
#pragma once

#include "programs/run_options.hpp"
#include "programs/run_report.hpp"

namespace minfer::programs {

// Ctrl-C stops a reply, a second one within a second the program; SIGTERM stops the program. The session is saved in every case. How the
// program ends.
Result<int> run_chat(const RunArguments& run, const Model& model, const Notes& notes);

}  // namespace minfer::programs
