// Where the text of a program goes.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/env.hpp"
#include "base/error.hpp"
#include "config/config.hpp"

namespace minfer::programs {

// Whether what goes to this stream is coloured. auto: on a terminal that knows colours, unless NO_COLOR asks for none (no-color.org).
inline bool colours_on(ColorChoice choice, int fd) {
  if (choice != ColorChoice::kAuto) return choice == ColorChoice::kAlways;
  return ::isatty(fd) != 0 && env("NO_COLOR").value_or("").empty() && env("TERM").value_or("") != "dumb";
}

// Standard output, unbuffered. Remembers the first failure and writes nothing after it.
class Output {
 public:
  void write(std::string_view bytes) {
    while (!bytes.empty() && error_ == 0) {
      const ssize_t n = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (n >= 0) {
        last_ = bytes[static_cast<size_t>(n) - (n > 0 ? 1 : 0)];
        bytes.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
  }
  // A terminal's prompt must not stand behind the text.
  void finish_line() {
    if (last_ != '\n' && ::isatty(STDOUT_FILENO)) write("\n");
  }
  bool failed() const { return error_ != 0; }
  Status status() const { return error_ ? Status(io_error("standard output: {}", std::strerror(error_))) : Status(); }

 private:
  int error_ = 0;
  char last_ = '\n';
};

}  // namespace minfer::programs
