// The real models against float64 references of 12 prompts and of a perplexity text. Limits: what llama.cpp (f16 KV) measures on
// the same data plus half of it on means, twice on maxima.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "runtime/perplexity.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

// f16, or what MINFER_TEST_KV_FORMAT says: to measure what the other formats cost.
CpuOptions cpu_options() {
  CpuOptions options;
  const char* given = std::getenv("MINFER_TEST_KV_FORMAT");
  const std::string name = given ? given : "f16";
  options.kv_format = name == "f32" ? KvFormat::kF32 : name == "q8_0" ? KvFormat::kQ8_0 : KvFormat::kF16;
  return options;
}

struct Limits {
  double mean_kl, max_kl, mean_top1, max_top1, max_top10, agreement;
  double margin;                     // a best token that differs must have been this close to the second in the reference
  uint64_t greedy;                   // of 816
  double nll;                        // |mean NLL - reference| of the perplexity text
  double mean_full_kl, max_full_kl;  // over the whole vocabulary, at the last position of each prompt
};

Agreement measure_prompts(const ModelOnCpu& model, const std::string& folder) {
  Agreement agreement;
  for (const PromptReference& prompt : prompt_references(folder)) {
    // The prompt, then the reference's own greedy tokens: logits at each of them, whatever we would have chosen.
    std::vector<int32_t> tokens = prompt.ids;
    for (size_t i = 0; i + 1 < prompt.greedy.size(); ++i) tokens.push_back(prompt.greedy[i].id);
    const auto n_prompt = static_cast<uint32_t>(prompt.ids.size());
    const uint32_t first = std::min(prompt.positions.front().pos, n_prompt - 1);
    const auto session = model.session(2048);
    const std::vector<float> rows = run_tokens(*session, tokens, static_cast<uint32_t>(tokens.size()) - first);
    const size_t n_vocab = model->info().n_vocab;
    const auto row = [&](uint32_t position) { return std::span(rows).subspan((position - first) * n_vocab, n_vocab); };
    for (const auto& position : prompt.positions) agreement.add(position, row(position.pos));
    for (uint32_t i = 0; i < prompt.greedy.size(); ++i) agreement.add_greedy(prompt.greedy[i], row(n_prompt - 1 + i));
    REQUIRE(prompt.last_row.size() == n_vocab);
    agreement.add_full(prompt.last_row, row(n_prompt - 1));
  }
  return agreement;
}

void check_prompts(std::string_view model_name, const std::string& folder, const Limits& limits) {
  const ModelOnCpu model(model_file(model_name), cpu_options());
  const Agreement a = measure_prompts(model, folder);
  std::printf(
      "%s: mean KL %.6f, max KL %.4f, top-1 dlogprob mean %.4f max %.3f, top-10 max %.3f, top-1 agreement %.4f, greedy %lu of %lu\n",
      folder.c_str(), a.mean_kl(), a.kl_max, a.mean_top1_dlogprob(), a.top1_dlogprob_max, a.top10_dlogprob_max, a.top1_agreement(),
      static_cast<unsigned long>(a.greedy_same), static_cast<unsigned long>(a.greedy_steps));
  CHECK(a.mean_kl() <= limits.mean_kl);
  CHECK(a.kl_max <= limits.max_kl);
  std::printf("%s: over whole rows mean KL %.6f, max %.4f\n", folder.c_str(), a.mean_full_kl(), a.full_kl_max);
  REQUIRE(a.full_rows == 12);
  CHECK(a.mean_full_kl() <= limits.mean_full_kl);
  CHECK(a.full_kl_max <= limits.max_full_kl);
  CHECK(a.mean_top1_dlogprob() <= limits.mean_top1);
  CHECK(a.top1_dlogprob_max <= limits.max_top1);
  CHECK(a.top10_dlogprob_max <= limits.max_top10);
  CHECK(a.top1_agreement() >= limits.agreement);
  CHECK(a.worst_margin_missed <= std::min(limits.margin, 0.6));
  CHECK(a.worst_greedy_margin_missed <= limits.margin);
  REQUIRE(a.greedy_steps == 576);
  CHECK(a.greedy_same >= limits.greedy);
}

void check_perplexity(std::string_view model_name, const std::string& reference_file, const Limits& limits) {
  const nlohmann::json reference = nlohmann::json::parse(read_file(data_dir() / "ppl" / reference_file));
  const ModelOnCpu model(model_file(model_name), cpu_options());
  const auto ids = model->tokenizer().encode(read_file(data_dir() / "ppl/text.txt"));
  REQUIRE(ids.ok());
  const std::vector<int32_t> tokens(ids->begin(), ids->end());
  CHECK(tokens == reference["ids"].get<std::vector<int32_t>>());
  const auto session = model.session(512);
  const auto result = perplexity(*session, tokens, 512, 512, {});
  REQUIRE(result.ok());
  const double expected = reference["f64"]["mean_nll"];
  std::printf("%s: mean NLL %.6f, reference %.6f\n", reference_file.c_str(), result->mean_nll, expected);
  CHECK(result->chunk_mean_nll.size() == reference["n_chunks"].get<size_t>());
  CHECK(std::abs(result->mean_nll - expected) <= limits.nll);
}

constexpr Limits kQwen2{0.0013, 0.06, 0.033, 0.6, 0.9, 0.96, 0.5, 565, 0.004, 0.0019, 0.0083};
// One greedy step of 576, the second token after the one-token prompt, differs at a margin of 0.71, everything else below 0.26. That is
// what 8-bit activations cost at this step, not an error: the float64 reference with activations rounded to our blocks, and noise of 1e-6
// on the embedding, spreads the difference of the two logits over 0.03 to 0.88 (0.80 without rounding) and finds another best token in 8
// of 82 runs. llama.cpp falls on the right side (its largest margin is 0.26), as we do with an f32 KV cache.
constexpr Limits kSmolLm2{0.0043, 0.20, 0.063, 0.9, 2.0, 0.95, 0.75, 547, 0.010, 0.0064, 0.023};

}  // namespace

#ifdef MINFER_TEST_QWEN2
TEST_CASE("golden/logits: Qwen2.5-Coder-0.5B agrees with the float64 reference", "[golden]") {
  check_prompts(kQwen2Model, "logits_qwen2", kQwen2);
}
TEST_CASE("golden/perplexity: Qwen2.5-Coder-0.5B agrees with the float64 reference", "[golden]") {
  check_perplexity(kQwen2Model, "ppl_qwen2.json", kQwen2);
}
#endif
#ifdef MINFER_TEST_LLAMA
TEST_CASE("golden/logits: SmolLM2-135M agrees with the float64 reference", "[golden]") {
  check_prompts(kSmolLm2Model, "logits_smollm2", kSmolLm2);
}
TEST_CASE("golden/perplexity: SmolLM2-135M agrees with the float64 reference", "[golden]") {
  check_perplexity(kSmolLm2Model, "ppl_smollm2.json", kSmolLm2);
}
#endif
