// Counts the allocations of sampling, through operator new of this program.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "sample/sampler.hpp"

namespace {
std::atomic<int> n_allocations{0};
}

[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return std::malloc(size ? size : 1);
}
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

using namespace minfer::sample;

TEST_CASE("sample/sampler: sampling allocates nothing after construction", "[sample]") {
  const int before_vector = n_allocations;
  std::vector<float> logits(5000);
  REQUIRE(n_allocations > before_vector);  // the counter counts
  SplitMix64 random(1);
  for (float& logit : logits) logit = random.uniform() * 8.0f;
  for (int32_t top_k : {0, 40}) {
    SamplerParams params;
    params.top_k = top_k;
    params.min_p = 0.01f;
    params.frequency_penalty = 0.5f;
    params.logit_bias = {{4999, 2.0f}, {17, -3.0f}};
    params.dry_multiplier = 0.5f;
    params.dry_allowed_length = 1;
    params.typical_p = 0.9f;
    params.xtc_probability = 0.5f;
    params.xtc_threshold = 0.01f;
    params.top_n_sigma = 3.0f;
    if (top_k == 0) params.mirostat = Mirostat::kV1;
    auto sampler = Sampler::create(params, 5000, 64);
    REQUIRE(sampler.ok());
    const int before = n_allocations;
    int32_t n_ok = 0;
    for (int i = 0; i < 100; ++i) {
      const auto id = sampler->sample(logits);
      n_ok += id.ok();
      sampler->accept(*id);
    }
    const int after = n_allocations;
    CHECK(n_ok == 100);
    CHECK(after == before);
  }
}
