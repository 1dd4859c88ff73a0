// Sessions of one model on several threads: they share its devices and give the bits that they give alone.
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <thread>

#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

// A prompt in two chunks, 24 tokens one by one, some positions taken out and put in again; nothing where a step fails.
std::vector<float> run(const Model& model, uint32_t salt) {
  CParams cparams;
  cparams.n_ctx = 128;
  auto session = Session::create(model.engine(), cparams);
  if (!session.ok()) return {};
  std::vector<float> all;
  const auto step = [&](std::vector<int32_t> tokens) {
    const SeqChunk chunk{0, tokens, 1};
    const auto logits = (*session)->forward({&chunk, 1});
    if (logits.ok()) all.insert(all.end(), logits->values.begin(), logits->values.end());
    return logits.ok();
  };
  const auto token = [&](uint32_t i) { return static_cast<int32_t>((i * 31 + salt * 17 + 3) % model.info().n_vocab); };
  std::vector<int32_t> prompt(20 + salt);
  for (uint32_t i = 0; i < prompt.size(); ++i) prompt[i] = token(i);
  bool good = step(prompt) && step({token(77), token(78), token(79)});
  for (uint32_t i = 0; i < 24 && good; ++i) good = step({token(100 + i)});
  good = good && (*session)->remove(0, 2, 5).ok() && step({token(200)});
  return good ? all : std::vector<float>();
}

}  // namespace

TEST_CASE("embedding/threads: sessions of one model on four threads give the bits of runs one after the other") {
  constexpr uint32_t kThreads = 4;
  const ModelOnCpu model(data_dir() / "tiny/qwen2_Q4_K.gguf");
  std::vector<std::vector<float>> alone(kThreads), together(kThreads);
  for (uint32_t i = 0; i < kThreads; ++i) {
    alone[i] = run(*model, i);
    REQUIRE_FALSE(alone[i].empty());
  }
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { together[i] = run(*model, i); });
    for (std::thread& thread : threads) thread.join();
    for (uint32_t i = 0; i < kThreads; ++i) {
      REQUIRE(together[i].size() == alone[i].size());
      CHECK(std::memcmp(together[i].data(), alone[i].data(), alone[i].size() * sizeof(float)) == 0);
    }
  }
}
