#include "programs/line_input.hpp"

#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cwchar>

namespace minfer::programs {
namespace {

// Signal handlers write the signal, so that none is overlooked between a look at it and the wait.
int wake_pipe[2] = {-1, -1};

std::string take_signals() {
  char buffer[64];
  std::string signals;
  for (ssize_t n = 0; (n = ::read(wake_pipe[0], buffer, sizeof buffer)) > 0;) signals.append(buffer, static_cast<size_t>(n));
  return signals;
}

// Until there is something to read, the end included. False: signals came first; none are told where there is no pipe.
bool wait_for_input(std::string* signals) {
  pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {wake_pipe[0], POLLIN, 0}};
  const int n = ::poll(waits, 2, -1);
  const bool woken = (n < 0 && errno == EINTR) || (n > 0 && waits[1].revents != 0);
  if (woken) *signals = take_signals();
  return !woken;
}

class PlainInput final : public LineInput {
 public:
  explicit PlainInput(std::function<bool()> stop) : stop_(std::move(stop)) {}

  Result<std::optional<std::string>> next(bool* interrupted) override {
    *interrupted = false;
    while (true) {
      if (const size_t end = held_.find('\n', searched_); end != std::string::npos) return take(end, end + 1);
      searched_ = held_.size();
      if (ended_) {
        if (held_.empty()) return std::optional<std::string>();
        return take(held_.size(), held_.size());
      }
      if (stop_()) return std::optional<std::string>();
      std::string signals;
      if (!wait_for_input(&signals)) continue;
      char buffer[4096];
      const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EBADF) return io_error("standard input: {}", std::strerror(errno));  // EBADF: it was closed
      if (n <= 0)
        ended_ = true;
      else
        held_.append(buffer, static_cast<size_t>(n));
      if (held_.size() > kMaxLineBytes) return invalid("standard input: a line of more than {} bytes", kMaxLineBytes);
    }
  }

 private:
  static constexpr size_t kMaxLineBytes = size_t{1} << 30;

  std::optional<std::string> take(size_t length, size_t used) {
    std::string line = held_.substr(0, length);
    held_.erase(0, used);
    searched_ = 0;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
  }

  std::function<bool()> stop_;
  std::string held_;
  size_t searched_ = 0;
  bool ended_ = false;
};

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {}, old = {};
  if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN) return;
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

class EditedInput final : public LineInput {
 public:
  EditedInput(std::string prompt, std::function<bool()> stop) : prompt_(std::move(prompt)), stop_(std::move(stop)) {
    editor_ = el_init("minfer-run", stdin, stderr, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, 1000);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT_ESC, &EditedInput::show_prompt, '\1');
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_BIND, "^I", "ed-insert", nullptr);  // pasted text has tabs, and nothing is completed here
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_SIGNAL, 0);  // signals are the program's
    el_set(editor_, EL_GETCFN, &EditedInput::read_character);
    for (const int signal : {SIGWINCH, SIGCONT}) handle(signal, wake_line_input);
  }
  ~EditedInput() override {
    history_end(history_);
    el_end(editor_);  // gives the terminal back
  }

  Result<std::optional<std::string>> next(bool* interrupted) override {
    *interrupted = false;
    int n = 0;
    errno = 0;
    take_signals();  // those of before
    if (stop_()) return std::optional<std::string>();
    el_resize(editor_);
    handle(SIGTSTP, wake_line_input);
    el_set(editor_, EL_PREP_TERM, 1);  // before the prompt is seen: what is typed behind it is for the editor
    const char* bytes = el_gets(editor_, &n);
    handle(SIGTSTP, SIG_DFL);
    if (!bytes || n <= 0) {
      if (n < 0 && errno == EINTR) {
        std::fputs("\n", stderr);
        el_set(editor_, EL_PREP_TERM, 0);
        if (stop_()) return std::optional<std::string>();
        *interrupted = true;
        el_reset(editor_);
        return std::optional<std::string>(std::string());
      }
      if (n < 0) return io_error("standard input: {}", std::strerror(errno));
      std::fputs("\n", stderr);
      return std::optional<std::string>();
    }
    std::string line(bytes, static_cast<size_t>(n));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    HistEvent event;
    if (!line.empty()) history(history_, &event, H_ENTER, line.c_str());
    return std::optional<std::string>(std::move(line));
  }

 private:
  // 1 and a character of standard input, 0 at its end, -1 and errno where a signal or a failure ends the wait. Signals that concern the
  // terminal alone do not end it.
  static int read_character(EditLine* editor, wchar_t* character) {
    std::mbstate_t state{};
    while (true) {
      if (std::string signals; !wait_for_input(&signals)) {
        const auto of_terminal = [](char signal) { return signal == SIGTSTP || signal == SIGCONT || signal == SIGWINCH; };
        if (signals.empty() || !std::all_of(signals.begin(), signals.end(), of_terminal)) {
          errno = EINTR;
          return -1;
        }
        el_set(editor, EL_PREP_TERM, 0);
        if (signals.find(static_cast<char>(SIGTSTP)) != std::string::npos) std::raise(SIGSTOP);
        el_resize(editor);
        el_set(editor, EL_PREP_TERM, 1);
        el_set(editor, EL_REFRESH);
        continue;
      }
      char byte = 0;
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return static_cast<int>(n);
      const size_t used = std::mbrtowc(character, &byte, 1, &state);
      if (used == static_cast<size_t>(-1)) state = {};  // no character: it is passed over
      if (used <= 1) return 1;
    }
  }

  static char* show_prompt(EditLine* editor) {
    EditedInput* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return self->prompt_.data();
  }

  std::string prompt_;
  std::function<bool()> stop_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

void wake_line_input(int signal) {
  const int saved = errno;
  const char byte = static_cast<char>(signal);
  (void)!::write(wake_pipe[1], &byte, 1);
  errno = saved;
}

std::unique_ptr<LineInput> open_line_input(bool terminal, std::string prompt, std::function<bool()> stop) {
  if (wake_pipe[0] < 0 && ::pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0) wake_pipe[0] = wake_pipe[1] = -1;  // signals still end waits
  if (terminal) return std::make_unique<EditedInput>(std::move(prompt), std::move(stop));
  return std::make_unique<PlainInput>(std::move(stop));
}

}  // namespace minfer::programs
