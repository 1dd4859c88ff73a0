// What choosing a token costs on a row of 151,936 logits. Not part of the tests: cmake --build build --target bench_sampler.
#include <benchmark/benchmark.h>

#include "sample/sampler.hpp"

namespace {

using namespace minfer::sample;

constexpr int32_t kVocab = 151936;

// The sum of four uniform numbers: close to what a model's logits look like.
std::vector<float> make_row() {
  SplitMix64 random(1);
  std::vector<float> row(kVocab);
  for (float& logit : row) logit = 6.0f * (random.uniform() + random.uniform() + random.uniform() + random.uniform()) - 12.0f;
  return row;
}

void run(benchmark::State& state, const SamplerParams& params) {
  const std::vector<float> row = make_row();
  auto sampler = Sampler::create(params, kVocab, 4096);
  if (!sampler.ok()) return state.SkipWithError(sampler.error().text.c_str());
  for (int32_t i = 0; i < 4096; ++i) sampler->accept(i * 37 % kVocab);
  for (auto _ : state) {
    const auto token = sampler->sample(row);
    sampler->accept(*token);
    benchmark::DoNotOptimize(*token);
  }
}

template <class Change>
void add(const char* name, Change change) {
  SamplerParams params;
  change(params);
  benchmark::RegisterBenchmark(name, run, params)->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  add("defaults", [](SamplerParams&) {});
  add("greedy", [](SamplerParams& p) { p.temperature = 0.0f; });
  add("penalties over 4096", [](SamplerParams& p) { p.repeat_last_n = -1; });
  add("DRY over 4096", [](SamplerParams& p) { p.dry_multiplier = 0.8f, p.dry_penalty_last_n = -1; });
  add("every filter", [](SamplerParams& p) {
    p.typical_p = 0.9f, p.min_p = 0.01f, p.xtc_probability = 0.5f, p.xtc_threshold = 0.1f, p.top_n_sigma = 2.0f;
  });
  add("mirostat 1", [](SamplerParams& p) { p.mirostat = Mirostat::kV1; });
  add("mirostat 2", [](SamplerParams& p) { p.mirostat = Mirostat::kV2; });
  add("top-p without top-k", [](SamplerParams& p) { p.top_k = 0; });
  add("min-p without top-k", [](SamplerParams& p) { p.top_k = 0, p.top_p = 1.0f, p.min_p = 0.05f; });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
