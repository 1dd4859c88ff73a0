// Helpers of the kernel tests: random data, bit patterns, the tables under test.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/ops.hpp"
#include "support/support.hpp"

namespace minfer::test {

inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

// Equal bits, or NaN both (a NaN's payload is nobody's contract).
inline bool same_bits(float a, float b) { return bits_of(a) == bits_of(b) || (a != a && b != b); }

// The first index where the vectors differ, or -1.
inline int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

inline std::vector<float> normal_values(size_t n, uint32_t seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& x : values) x = scale * normal(generator);
  return values;
}

inline const cpu::OpKernels& avx2_or_skip() {
  if (!cpu::isa_supported(cpu::Isa::kAvx2)) skip("this CPU has no AVX2");
  return cpu::op_kernels(cpu::Isa::kAvx2);
}

}  // namespace minfer::test
