// minfer-run on a fixture model, as a process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/programs/fixture_model.hpp"

namespace minfer::test {

class FixtureRun {
 public:
  explicit FixtureRun(const FixtureModel& model) { model.write(path()); }
  std::filesystem::path path() const { return dir_.path() / "model.gguf"; }
  std::filesystem::path folder() const { return dir_.path(); }
  // With -m, -q and, unless there is another, -t 1 in front.
  ProcessResult run(std::vector<std::string> arguments, const std::vector<std::string>& env = {}) const;
  // Greedy, without penalties. The text; the run must succeed.
  std::string greedy(std::vector<std::string> arguments) const;

 private:
  TempDir dir_;
};

std::string program(std::string_view name);

// minfer-run with at most so much address space. A sanitizer reserves far more, so a build with one knows no limit.
ProcessResult run_limited(long kib, const std::string& arguments);

// Exit code 1, nothing on standard output, one line "error: ..." with these words on standard error.
void check_refused(const ProcessResult& result, const std::vector<std::string>& words);

}  // namespace minfer::test
