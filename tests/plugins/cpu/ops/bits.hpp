// Helpers of the kernel tests: random data, bit patterns, the tables under test.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ops.hpp"
#include "support/support.hpp"

#if defined(MINFER_AVX512_BY_SIMDE)
namespace minfer::cpu::avx512_by_simde {  // tests/plugins/cpu/kernels/avx512_by_simde.hpp
extern const OpKernels kOps;
}
#endif

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

inline const cpu::OpKernels& avx512_or_skip() {
  if (!cpu::isa_supported(cpu::Isa::kAvx512)) skip("this CPU has no AVX-512");
  return cpu::op_kernels(cpu::Isa::kAvx512);
}

// The AVX-512 kernels as AVX2 code.
inline const cpu::OpKernels& emulated_avx512_or_skip() {
#if defined(MINFER_AVX512_BY_SIMDE)
  if (!cpu::isa_supported(cpu::Isa::kAvx2)) skip("this CPU has no AVX2, which the emulation of AVX-512 needs");
  return cpu::avx512_by_simde::kOps;
#else
  skip("built under a sanitizer or without SIMDe (libsimde-dev): AVX-512 is not emulated");
#endif
}

// The table under test, after its name was seen to be the expected one: an equality test is worth nothing where another table answers.
inline const cpu::OpKernels& named(const cpu::OpKernels& table, std::string_view isa) {
  if (table.isa != isa) throw std::runtime_error("the table is " + std::string(table.isa));
  return table;
}

// Every table that runs here, natively or emulated.
inline std::vector<const cpu::OpKernels*> all_tables() {
  std::vector<const cpu::OpKernels*> tables;
  for (const cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512})
    if (cpu::isa_supported(isa)) tables.push_back(&cpu::op_kernels(isa));
#if defined(MINFER_AVX512_BY_SIMDE)
  if (cpu::isa_supported(cpu::Isa::kAvx2)) tables.push_back(&cpu::avx512_by_simde::kOps);
#endif
  return tables;
}

}  // namespace minfer::test
