// A program on a terminal of its own (a pseudo terminal): what a user types and sees.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <string>
#include <string_view>
#include <vector>

namespace minfer::test {

class Terminal {
 public:
  // Starts the program as the leader of a session on a terminal of 24 lines and 80 columns.
  explicit Terminal(const std::vector<std::string>& argv);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view bytes);
  // Waits until the screen has shown `text` `count` times since the last call that found something; false after half a minute.
  bool shows(std::string_view text, int count = 1);
  void resize(unsigned short columns);
  void signal(int signal) const;
  // Waits until the process is stopped or has ended.
  bool stopped() const;
  int exit_code();  // -signal when a signal ended it, -1000 when it did not end
  bool as_it_was() const;
  const std::string& screen() const { return screen_; }

 private:
  bool read_some(int timeout_ms);

  int master_ = -1, slave_ = -1;
  pid_t pid_ = -1;
  termios before_{};
  std::string screen_;
  size_t seen_ = 0;
};

}  // namespace minfer::test
