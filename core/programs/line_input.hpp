// Lines of a conversation: from a terminal, with editing and history, or from anything else as they come.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace minfer::programs {

class LineInput {
 public:
  virtual ~LineInput() = default;
  // The next line without its newline; nothing at the end of the input, or when `stop` says so while it waits (it is asked after every
  // signal). A failed read is an error. *interrupted: Ctrl-C threw away what had been typed, and the line is empty.
  virtual Result<std::optional<std::string>> next(bool* interrupted) = 0;
};

// To be called by handlers of signals that end the wait for a line, also where one comes just before the wait begins.
void wake_line_input(int signal);

// Standard input. The terminal is left as it was found, whatever ends the program in an orderly way. prompt: shown before each
// line of a terminal, on standard error; what lies between \1 characters has no width.
std::unique_ptr<LineInput> open_line_input(bool terminal, std::string prompt, std::function<bool()> stop);

}  // namespace minfer::programs
