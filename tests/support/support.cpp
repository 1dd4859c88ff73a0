#include "support/support.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace minfer::test {
namespace fs = std::filesystem;

fs::path data_dir() { return MINFER_TEST_DATA_DIR; }
fs::path build_dir() { return MINFER_TEST_BUILD_DIR; }

fs::path model_file(std::string_view name) {
  fs::path dir;
  if (const char* from_env = std::getenv("MINFER_MODEL_DIR"))
    dir = from_env;
  else if (const char* home = std::getenv("HOME"))
    dir = fs::path(home) / ".cache/minfer/models";
  const fs::path file = dir / name;
  if (!fs::exists(file)) {
    const std::string reason = "model " + file.string() + " is missing: run scripts/fetch-model --all";
    if (const char* without = std::getenv("MINFER_TEST_WITHOUT_MODELS"); without && std::string_view(without) == "1") skip(reason);
    FAIL(reason);
  }
  return file;
}

void skip(std::string_view reason) {
  std::fprintf(stderr, "SKIPPED: %.*s\n", static_cast<int>(reason.size()), reason.data());
  std::fflush(nullptr);
  std::_Exit(77);
}

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "minfer-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) FAIL("cannot create a temporary folder " << pattern);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) FAIL("cannot read " << path);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return std::move(bytes).str();
}

void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) FAIL("cannot write " << path);
}

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) FAIL("cannot read " << path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

ProcessResult run_process(const std::vector<std::string>& argv, std::string_view input, const std::vector<std::string>& env) {
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) FAIL("pipe failed");
  const pid_t pid = fork();
  if (pid < 0) FAIL("fork failed");
  if (pid == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    for (const std::string& entry : env) putenv(const_cast<char*>(entry.c_str()));
    std::vector<char*> args;
    for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
    args.push_back(nullptr);
    execvp(args[0], args.data());
    std::_Exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  std::signal(SIGPIPE, SIG_IGN);
  ProcessResult result;
  pollfd fds[3] = {{in[1], POLLOUT, 0}, {out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  fcntl(in[1], F_SETFL, O_NONBLOCK);
  if (input.empty()) {
    close(in[1]);
    fds[0].fd = -1;
  }
  while (fds[1].fd >= 0 || fds[2].fd >= 0) {
    if (poll(fds, 3, -1) < 0) break;
    if (fds[0].fd >= 0 && fds[0].revents) {
      const ssize_t n = write(in[1], input.data(), input.size());
      if (n > 0) input.remove_prefix(static_cast<size_t>(n));
      if (n < 0 || input.empty()) {
        close(in[1]);
        fds[0].fd = -1;
      }
    }
    for (int i = 1; i < 3; ++i) {
      if (fds[i].fd < 0 || !fds[i].revents) continue;
      char buffer[65536];
      const ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        (i == 1 ? result.out : result.err).append(buffer, static_cast<size_t>(n));
      } else {
        close(fds[i].fd);
        fds[i].fd = -1;
      }
    }
  }
  if (fds[0].fd >= 0) close(in[1]);
  int status = 0;
  waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

}  // namespace minfer::test
