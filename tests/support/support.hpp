// What every test may use: where data, programs and models lie, temporary folders, and the one way to skip.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace minfer::test {

// tests/data of the source tree.
std::filesystem::path data_dir();
// The build tree this test was built in (programs in bin/, plugins in bin/plugins/).
std::filesystem::path build_dir();

// The file NAME in the model directory (MINFER_MODEL_DIR or ~/.cache/minfer/models). A missing model fails the test with
// the command that fetches it, unless MINFER_TEST_WITHOUT_MODELS=1: then the test is skipped.
std::filesystem::path model_file(std::string_view name);
inline constexpr std::string_view kQwen2Model = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
inline constexpr std::string_view kSmolLm2Model = "SmolLM2-135M-Instruct.Q4_1.gguf";

// Ends the test process at once with exit code 77, which ctest counts as skipped. Says why on stderr.
[[noreturn]] void skip(std::string_view reason);

// A folder of its own below the system's temporary folder, removed at the end of scope.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view bytes);
// Non-empty lines of a text file.
std::vector<std::string> read_lines(const std::filesystem::path& path);
// "48656c" -> "Hel"
std::string from_hex(std::string_view hex);

struct ProcessResult {
  int exit_code = -1;  // -signal when a signal ended it
  std::string out;
  std::string err;
};
// Runs a program without a shell. `input` is its standard input. Extra environment as NAME=VALUE.
ProcessResult run_process(const std::vector<std::string>& argv, std::string_view input = {}, const std::vector<std::string>& env = {});

}  // namespace minfer::test
