// Several sequences in one batch, on a model that repeats the last eight tokens of what its sequence holds.
#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/generate.hpp"
#include "support/fixture_models.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

const std::vector<std::string> kArchitectures = {
#ifdef MINFER_TEST_QWEN2
    "qwen2",
#endif
#ifdef MINFER_TEST_LLAMA
    "llama",
#endif
};

int32_t best(std::span<const float> row) { return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()); }

}  // namespace

TEST_CASE("golden/sequences: four prompts that are generated from in common batches each go on as their own") {
  const TempDir temp;
  const auto file = temp.path() / "copy.gguf";
  const std::vector<std::string> prompts = {"cdefghij", "klmnopqr", "stuvwxyz", "CDEFGHIJ"};
  constexpr size_t kTokens = 32, kRounds = 3;
  for (const std::string& architecture : kArchitectures) {
    write_copy_model(file, architecture);
    const ModelOnCpu model(file);
    CParams four;
    four.max_seqs = 4;
    const auto session = model.session(256, four);
    for (size_t round = 0; round < kRounds; ++round) {
      std::vector<std::string> texts(4);
      std::vector<std::vector<int32_t>> tokens;
      for (const std::string& prompt : prompts) tokens.emplace_back(prompt.begin(), prompt.end());
      for (size_t step = 0; step < kTokens; ++step) {
        std::vector<SeqChunk> chunks;
        for (uint32_t s = 0; s < 4; ++s) chunks.push_back({s, tokens[s], 1});
        const auto logits = session->forward(chunks);
        if (!logits.ok()) FAIL(logits.error().text);
        for (uint32_t s = 0; s < 4; ++s) {
          tokens[s] = {best(logits->row(s))};
          texts[s] += static_cast<char>(tokens[s][0]);
        }
      }
      for (uint32_t s = 0; s < 4; ++s) {
        CHECK(texts[s] == prompts[s] + prompts[s] + prompts[s] + prompts[s]);
        REQUIRE(session->rollback(s, 0).ok());
      }
    }
  }
}
