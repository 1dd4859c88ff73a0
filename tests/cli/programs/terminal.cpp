#include "cli/programs/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace minfer::test {
namespace {

constexpr int kPatienceMs = 30000;

}  // namespace

Terminal::Terminal(const std::vector<std::string>& argv) {
  winsize size{24, 80, 0, 0};
  REQUIRE(openpty(&master_, &slave_, nullptr, nullptr, &size) == 0);
  fcntl(master_, F_SETFD, FD_CLOEXEC);
  fcntl(master_, F_SETFL, O_NONBLOCK);
  REQUIRE(tcgetattr(slave_, &before_) == 0);
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    setsid();
    ioctl(slave_, TIOCSCTTY, 0);
    for (const int fd : {0, 1, 2}) dup2(slave_, fd);
    close(slave_);
    setenv("TERM", "xterm", 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
}

Terminal::~Terminal() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(master_);
  close(slave_);
}

bool Terminal::read_some(int timeout_ms) {
  pollfd wait{master_, POLLIN, 0};
  if (poll(&wait, 1, timeout_ms) <= 0) return false;
  char buffer[4096];
  const ssize_t n = read(master_, buffer, sizeof buffer);
  if (n > 0) screen_.append(buffer, static_cast<size_t>(n));
  return n > 0;
}

void Terminal::type(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(master_, bytes.data(), bytes.size());
    if (n > 0)
      bytes.remove_prefix(static_cast<size_t>(n));
    else if (!read_some(kPatienceMs))  // what it shows must be taken before it takes more
      FAIL("the program takes no input");
  }
}

bool Terminal::shows(std::string_view text, int count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  size_t from = seen_;
  while (true) {
    if (const size_t at = screen_.find(text, from); at != std::string::npos) {
      from = at + text.size();
      if (--count == 0) {
        seen_ = from;
        return true;
      }
      continue;
    }
    if (std::chrono::steady_clock::now() > end) return false;
    read_some(100);
  }
}

void Terminal::resize(unsigned short columns) {
  const winsize size{24, columns, 0, 0};
  ioctl(master_, TIOCSWINSZ, &size);  // sends SIGWINCH
}

void Terminal::signal(int signal) const { kill(pid_, signal); }

bool Terminal::stopped() const {
  for (int waited = 0; waited < kPatienceMs; waited += 10) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_)
      return info.si_code == CLD_STOPPED;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

int Terminal::exit_code() {
  for (int waited = 0; waited < kPatienceMs; waited += 10) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      while (read_some(0)) {
      }
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    read_some(10);
  }
  return -1000;
}

bool Terminal::as_it_was() const {
  termios now{};
  REQUIRE(tcgetattr(slave_, &now) == 0);
  return now.c_iflag == before_.c_iflag && now.c_oflag == before_.c_oflag && now.c_cflag == before_.c_cflag &&
         now.c_lflag == before_.c_lflag && std::memcmp(now.c_cc, before_.c_cc, sizeof now.c_cc) == 0;
}

}  // namespace minfer::test
