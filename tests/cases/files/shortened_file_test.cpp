// A model file that is shortened while it is mapped: an error at the next step, not the end of the process.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/file_mapping.hpp"
#include "cases/files/try_model.hpp"
#include "runtime/generate.hpp"
#include "support/gguf_writer.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

std::filesystem::path copy_of(const TempDir& dir, const char* model) {
  const auto path = dir.path() / "model.gguf";
  std::filesystem::copy_file(data_dir() / "tiny" / model, path);
  return path;
}

// Untied, so that the embedding is read from the file for as long as the model lives.
std::filesystem::path copy_of_untied_model(const TempDir& dir) { return copy_of(dir, "llama_untied_Q8_0.gguf"); }

Result<std::vector<float>> forward(Session& session, const std::vector<int32_t>& tokens) {
  const SeqChunk chunk{0, tokens, 1};
  auto logits = session.forward({&chunk, 1});
  if (!logits.ok()) return logits.error();
  return std::vector<float>(logits->row(0).begin(), logits->row(0).end());
}

}  // namespace

TEST_CASE("cases/files: a file shortened between opening and import is refused") {
  survive_shortened_files();
  const TempDir dir;
  const auto path = copy_of_untied_model(dir);
  const auto registry = build_tree_plugins();
  int notices = 0;
  const auto model = Model::load(load_options(path, {}), *registry, [&](std::string_view) {
    if (notices++ == 0) std::filesystem::resize_file(path, 8192);  // the backend is open, nothing is imported yet
  });
  CHECK(notices > 0);
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().code == ErrorCode::kIo);
  CHECK_THAT(model.error().text, Catch::Contains("model.gguf") && Catch::Contains("and has 8192 now"));
}

TEST_CASE("cases/files: a file shortened under a loaded model ends the next step with an error") {
  survive_shortened_files();
  const TempDir dir;
  const auto path = copy_of_untied_model(dir);
  const ModelOnCpu model(path);
  const auto session = model.session(64);
  const std::vector<int32_t> tokens = {1, 2, 3};
  const SeqChunk chunk{0, tokens, 1};
  REQUIRE(session->forward({&chunk, 1}).ok());
  std::filesystem::resize_file(path, 4096);
  const std::vector<int32_t> others = {200, 250};
  const SeqChunk next{0, others, 1};
  const auto logits = session->forward({&next, 1});
  REQUIRE_FALSE(logits.ok());
  CHECK_THAT(logits.error().text, Catch::Contains("model.gguf") && Catch::Contains("and has 4096 now"));
  CHECK(session->cursor(0) == 3);
}

TEST_CASE("cases/files: a file shortened before the first step or behind the second of a model that is packed by then") {
  survive_shortened_files();
  const std::vector<int32_t> first = {1, 2, 3}, second = {200}, third = {250};
  {
    const TempDir dir;
    const auto path = copy_of(dir, "llama_Q8_0.gguf");
    const ModelOnCpu model(path);
    const auto session = model.session(64);
    std::filesystem::resize_file(path, 4096);
    const auto logits = forward(*session, first);
    REQUIRE_FALSE(logits.ok());
    CHECK_THAT(logits.error().text, Catch::Contains("model.gguf") && Catch::Contains("and has 4096 now"));
    CHECK_FALSE(forward(*session, first).ok());
  }
  const TempDir dir;
  const auto path = copy_of(dir, "llama_Q8_0.gguf");
  std::vector<std::vector<float>> thirds;
  for (const bool shorten : {false, true}) {
    const ModelOnCpu model(path);
    const auto session = model.session(64);
    REQUIRE(forward(*session, first).ok());
    REQUIRE(forward(*session, second).ok());
    if (shorten) std::filesystem::resize_file(path, 4096);
    const auto logits = forward(*session, third);
    REQUIRE(logits.ok());
    thirds.push_back(*logits);
  }
  CHECK(thirds[0] == thirds[1]);
}
