// Rotary embedding: the table against long double, the rotation against the formula in double, and across instruction sets.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "bits.hpp"
#include "kernels/rope_table.hpp"

namespace {

using namespace minfer::cpu;
using namespace minfer::test;

}  // namespace

TEST_CASE("cpu/rope: the table holds cos and sin of the angles", "[cpu]") {
  const int64_t n = 3000, dim = 64, half = dim / 2;
  std::vector<float> factors(half);
  for (int64_t i = 0; i < half; ++i) factors[static_cast<size_t>(i)] = 1.0f + 0.25f * static_cast<float>(i % 5);
  for (const bool with_factors : {false, true}) {
    for (const double freq_scale : {1.0, 0.25}) {
      std::vector<float> cos(n * half), sin(n * half);
      REQUIRE(rope_table(n, dim, 1000000.0, freq_scale, with_factors ? factors.data() : nullptr, cos.data(), sin.data()));
      long double worst = 0;
      for (int64_t p = 0; p < n; p += 7) {
        for (int64_t i = 0; i < half; ++i) {
          const auto at = static_cast<size_t>(p * half + i);
          const long double factor = with_factors ? factors[static_cast<size_t>(i)] : 1.0f;
          const long double angle = p * freq_scale * std::pow(1000000.0L, -2.0L * i / dim) / factor;
          worst = std::max(worst, std::fabs(cos[at] - std::cos(angle)));
          worst = std::max(worst, std::fabs(sin[at] - std::sin(angle)));
        }
      }
      CHECK(worst < 3.1e-8L);  // half a unit in the last place below 1, and the error of the angle
    }
  }
}

TEST_CASE("cpu/rope: the table refuses what has no angle", "[cpu]") {
  std::vector<float> cos(64), sin(64);
  const float bad_factors[2] = {1.0f, 0.0f};
  CHECK(rope_table(2, 4, 10000.0, 1.0, nullptr, cos.data(), sin.data()));
  CHECK_FALSE(rope_table(2, 3, 10000.0, 1.0, nullptr, cos.data(), sin.data()));
  CHECK_FALSE(rope_table(2, 0, 10000.0, 1.0, nullptr, cos.data(), sin.data()));
  CHECK_FALSE(rope_table(2, 4, 0.0, 1.0, nullptr, cos.data(), sin.data()));
  CHECK_FALSE(rope_table(2, 4, std::numeric_limits<double>::quiet_NaN(), 1.0, nullptr, cos.data(), sin.data()));
  CHECK_FALSE(rope_table(2, 4, 10000.0, std::numeric_limits<double>::infinity(), nullptr, cos.data(), sin.data()));
  CHECK_FALSE(rope_table(2, 4, 10000.0, 1.0, bad_factors, cos.data(), sin.data()));
  CHECK_FALSE(rope_table(2, 4, 10000.0, 3e6, nullptr, cos.data(), sin.data()));
}

TEST_CASE("cpu/rope: both pairings turn by the angle and leave the rest alone", "[cpu]") {
  const int64_t heads = 3, head_dim = 40, rope_dim = 28, half = rope_dim / 2;
  std::vector<float> cos(2 * half), sin(2 * half);
  REQUIRE(rope_table(2, rope_dim, 100.0, 1.0, nullptr, cos.data(), sin.data()));
  const auto x = normal_values(heads * head_dim, 11);
  const OpKernels& kernels = op_kernels(Isa::kBaseline);
  std::vector<float> split = x, interleaved = x;
  kernels.rope_split(split.data(), heads, head_dim, rope_dim, cos.data() + half, sin.data() + half);
  kernels.rope_interleaved(interleaved.data(), heads, head_dim, rope_dim, cos.data() + half, sin.data() + half);
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = std::pow(100.0, -2.0 * static_cast<double>(i) / rope_dim);
      const auto check = [&](const std::vector<float>& y, int64_t ia, int64_t ib) {
        const auto a = static_cast<size_t>(h * head_dim + ia), b = static_cast<size_t>(h * head_dim + ib);
        CHECK(y[a] == Approx(x[a] * std::cos(angle) - x[b] * std::sin(angle)).margin(1e-6));
        CHECK(y[b] == Approx(x[a] * std::sin(angle) + x[b] * std::cos(angle)).margin(1e-6));
      };
      check(split, i, i + half);
      check(interleaved, 2 * i, 2 * i + 1);
    }
    for (int64_t d = rope_dim; d < head_dim; ++d) {
      CHECK(split[static_cast<size_t>(h * head_dim + d)] == x[static_cast<size_t>(h * head_dim + d)]);
      CHECK(interleaved[static_cast<size_t>(h * head_dim + d)] == x[static_cast<size_t>(h * head_dim + d)]);
    }
  }
}

static void turns_like_baseline(const OpKernels& wide) {
  const OpKernels& baseline = op_kernels(Isa::kBaseline);
  REQUIRE(std::string(baseline.isa) == "baseline");
  for (int64_t rope_dim = 2; rope_dim <= 130; rope_dim += 2) {
    const int64_t head_dim = rope_dim + rope_dim % 6;
    const auto cos = normal_values(static_cast<size_t>(rope_dim / 2), 21), sin = normal_values(static_cast<size_t>(rope_dim / 2), 22);
    auto a = normal_values(static_cast<size_t>(5 * head_dim), 23);
    auto b = a;
    baseline.rope_split(a.data(), 5, head_dim, rope_dim, cos.data(), sin.data());
    wide.rope_split(b.data(), 5, head_dim, rope_dim, cos.data(), sin.data());
    CHECK(first_difference(a, b) == -1);
    baseline.rope_interleaved(a.data(), 5, head_dim, rope_dim, cos.data(), sin.data());
    wide.rope_interleaved(b.data(), 5, head_dim, rope_dim, cos.data(), sin.data());
    CHECK(first_difference(a, b) == -1);
  }
}
TEST_CASE("cpu/rope: AVX2 turns to the same bits as baseline", "[cpu]") { turns_like_baseline(named(avx2_or_skip(), "avx2")); }
TEST_CASE("cpu/rope: avx512 turns to the same bits as baseline", "[cpu]") { turns_like_baseline(named(avx512_or_skip(), "avx512")); }
TEST_CASE("cpu/rope: emulated avx512 turns to the same bits as baseline", "[cpu]") {
  turns_like_baseline(named(emulated_avx512_or_skip(), "avx512"));
}
