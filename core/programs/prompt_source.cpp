#include "programs/prompt_source.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace minfer::programs {
namespace {

constexpr size_t kMaxPromptBytes = size_t{1} << 30;  // more cannot be tokenized anyway

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(&word == &words.front() ? "" : " ").append(word);
  return text;
}

}  // namespace

Result<std::string> read_all(int file, std::string_view name) {
  std::string bytes;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(file, buffer, sizeof buffer);
    if (n == 0) return bytes;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("{}: {}", name, std::strerror(errno));
    bytes.append(buffer, static_cast<size_t>(n));
    if (bytes.size() > kMaxPromptBytes) return invalid("{}: more than {} bytes", name, kMaxPromptBytes);
  }
}

Result<std::string> read_whole_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return io_error("{}: {}", path, std::strerror(errno));
  auto bytes = read_all(file, path);
  ::close(file);
  return bytes;
}

Result<std::string> read_prompt(const ParsedOptions& parsed, int* code) {
  *code = kUsage;
  if (parsed.has("file")) {
    if (!parsed.words().empty()) return invalid("there are two prompts: words and -f {}", parsed.value("file"));
    *code = kFailed;
    MINFER_ASSIGN(std::string bytes, read_whole_file(parsed.value("file")));
    if (bytes.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
    return bytes;
  }
  if (!parsed.words().empty()) return joined(parsed.words());
  const auto missing = [] { return invalid("no prompt: give it as words, as a file with -f, or on standard input"); };
  if (::isatty(STDIN_FILENO)) return missing();
  if (::fcntl(STDIN_FILENO, F_GETFD) < 0) return missing();  // closed
  auto bytes = read_all(STDIN_FILENO, "standard input");
  if (!bytes.ok()) *code = kFailed;
  if (!bytes.ok()) return bytes.error();
  if (bytes->empty()) return missing();
  if (bytes->back() == '\n') bytes->pop_back();
  return bytes;
}

}  // namespace minfer::programs
