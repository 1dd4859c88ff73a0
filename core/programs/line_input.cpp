#include "programs/line_input.hpp"

#include <histedit.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace minfer::programs {
namespace {

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
      char buffer[4096];
      const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) {
        if (stop_()) return std::optional<std::string>();
        continue;
      }
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
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_SIGNAL, 0);  // signals are the program's
  }
  ~EditedInput() override {
    history_end(history_);
    el_end(editor_);  // gives the terminal back
  }

  Result<std::optional<std::string>> next(bool* interrupted) override {
    *interrupted = false;
    int n = 0;
    errno = 0;
    const char* bytes = el_gets(editor_, &n);
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
      return std::optional<std::string>();
    }
    std::string line(bytes, static_cast<size_t>(n));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    HistEvent event;
    if (!line.empty()) history(history_, &event, H_ENTER, line.c_str());
    return std::optional<std::string>(std::move(line));
  }

 private:
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

std::unique_ptr<LineInput> open_line_input(bool terminal, std::string prompt, std::function<bool()> stop) {
  if (terminal) return std::make_unique<EditedInput>(std::move(prompt), std::move(stop));
  return std::make_unique<PlainInput>(std::move(stop));
}

}  // namespace minfer::programs
