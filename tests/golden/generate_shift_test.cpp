// Generation at the end of the context, with and without context shift, on models whose text is known exactly.
#include <catch2/catch.hpp>

#include "runtime/generate.hpp"
#include "support/fixture_models.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

struct Run {
  GenerateResult result;
  std::vector<std::pair<uint32_t, uint32_t>> shifts;  // (first, dropped)
  uint32_t largest_position = 0;
};

GenerateOptions greedy(int32_t n_predict) {
  GenerateOptions options;
  options.n_predict = n_predict;
  options.sampling.temperature = 0;
  options.sampling.repeat_penalty = 1;
  return options;
}

Run run(const ModelOnCpu& model, uint32_t n_ctx, const std::vector<int32_t>& prompt, const GenerateOptions& options) {
  Run out;
  GenerateCallbacks callbacks;
  callbacks.on_shift = [&](uint32_t first, uint32_t dropped) { out.shifts.emplace_back(first, dropped); };
  callbacks.on_token = [&](uint32_t position, int32_t) { out.largest_position = std::max(out.largest_position, position); };
  const auto session = model.session(n_ctx);
  auto result = generate(*session, model->tokenizer(), prompt, options, callbacks);
  if (!result.ok()) FAIL(result.error().text);
  out.result = std::move(*result);
  CHECK(session->cursor(0) <= n_ctx);
  CHECK(out.result.n_shifts == out.shifts.size());
  return out;
}

std::vector<int32_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string repeat(const std::string& text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

const std::vector<std::string> kArchitectures = {
#ifdef MINFER_TEST_QWEN2
    "qwen2",
#endif
#ifdef MINFER_TEST_LLAMA
    "llama",
#endif
};

}  // namespace

TEST_CASE("golden/context shift: text that copies its context goes on unbroken across shifts in every format", "[golden]") {
  const TempDir temp;
  const auto file = temp.path() / "copy.gguf";
  for (const std::string& architecture : kArchitectures) {
    write_copy_model(file, architecture);
    for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
      const ModelOnCpu model(file, {2, "auto", format});
      GenerateOptions options = greedy(600);
      options.context_shift = true;
      const Run shifted = run(model, 256, bytes("cdefghij"), options);
      INFO(architecture << " format " << static_cast<uint32_t>(format));
      CHECK(shifted.result.text == repeat("cdefghij", 75));
      CHECK(shifted.result.finish == FinishReason::kLength);
      CHECK(shifted.shifts == std::vector<std::pair<uint32_t, uint32_t>>{{0, 128}, {0, 128}, {0, 128}});
      CHECK(shifted.largest_position == 255);
    }
  }
}

TEST_CASE("golden/context shift: the first positions are kept and the oldest half behind them is dropped", "[golden]") {
  const TempDir temp;
  const auto file = temp.path() / "history.gguf";
  for (const std::string& architecture : kArchitectures) {
    write_history_model(file, architecture);
    const ModelOnCpu model(file);
    const std::vector<int32_t> prompt = bytes(repeat("c", 33) + repeat("d", 31));
    GenerateOptions options = greedy(3);
    options.context_shift = true;
    // 33 c outweigh 31 d; of the 64 positions the first 32, all c, go: then d outweighs c.
    const Run oldest = run(model, 64, prompt, options);
    CHECK(oldest.result.text == "cdd");
    CHECK(oldest.shifts == std::vector<std::pair<uint32_t, uint32_t>>{{0, 32}});
    // 30 c are kept; of the 34 behind them 17 go, 3 c and 14 d: c still outweighs d.
    options.n_keep = 30;
    const Run kept = run(model, 64, prompt, options);
    CHECK(kept.result.text == "ccc");
    CHECK(kept.shifts == std::vector<std::pair<uint32_t, uint32_t>>{{30, 17}});
    // BOS is kept though nothing asked for it.
    std::vector<int32_t> with_bos = prompt;
    with_bos[0] = 256;
    options.n_keep = 0;
    CHECK(run(model, 64, with_bos, options).shifts == std::vector<std::pair<uint32_t, uint32_t>>{{1, 31}});
    // Nothing can be dropped.
    options.n_keep = 63;
    const Run full = run(model, 64, prompt, options);
    CHECK(full.result.finish == FinishReason::kContextFull);
    CHECK(full.result.tokens.empty());
  }
}

#ifdef MINFER_TEST_LLAMA
TEST_CASE("golden/context shift: without it a full context ends the run by itself", "[golden]") {
  const TempDir temp;
  const auto file = temp.path() / "a.gguf";
  write_chain_model(file, 512, 8, {});
  const ModelOnCpu model(file);
  const std::vector<int32_t> prompt = bytes(repeat("X", 10));
  const Run endless = run(model, 256, prompt, greedy(-1));
  CHECK(endless.result.text == repeat("a", 246));
  CHECK(endless.result.finish == FinishReason::kContextFull);
  CHECK(endless.shifts.empty());
  CHECK(run(model, 256, prompt, greedy(3)).result.text == "aaa");

  GenerateOptions never_ending = greedy(-1);
  never_ending.context_shift = true;
  const auto session = model.session(256);
  GenerateCallbacks callbacks;
  int polls = 0;
  callbacks.should_stop = [&] { return ++polls > 5000; };  // so that a run which is not refused fails instead of hanging
  const auto refused = generate(*session, model->tokenizer(), prompt, never_ending, callbacks);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().text, Catch::Contains("n_predict -1"));
  CHECK(session->cursor(0) == 0);
}

TEST_CASE("golden/kv formats: a head size that q8_0 cannot hold is refused by name and works in f16", "[golden]") {
  const TempDir temp;
  const auto file = temp.path() / "hd80.gguf";
  write_chain_model(file, 640, 8, {'C', 262, 'G', 263, 'J', '!'});
  const ModelOnCpu f16(file);
  CHECK(f16->info().head_dim == 80);
  const Run text = run(f16, 256, bytes("ABC"), greedy(20));
  CHECK(text.result.text == "DEFGHIJ!");
  CHECK(text.result.finish == FinishReason::kEndOfGeneration);

  const std::string error = ModelOnBackends::refusal(file, {backend("cpu")}, KvFormat::kQ8_0);
  INFO(error);
  CHECK_THAT(error, Catch::Contains("80") && Catch::Contains("32"));
}
#endif
