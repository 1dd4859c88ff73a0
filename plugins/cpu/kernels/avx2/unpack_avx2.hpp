// Reads packed blocks into registers: 8 rows (half a group) at a time. Included by matmul_avx2.cpp and pack_avx2.cpp.
#pragma once

#include <immintrin.h>

#include "kernels/matmul.hpp"
#include "kernels/x86_blocks.hpp"

namespace minfer::cpu {
namespace {

inline __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline __m256i broadcast32(const void* p) { return _mm256_set1_epi32(load_dword(p)); }

// sum + product. The empty statement hides the sum from the compiler, which otherwise turns the chain of additions into a
// tree whose parts no longer fit the registers (half the speed).
inline __m256i add16(__m256i sum, __m256i product) {
  sum = _mm256_add_epi16(sum, product);
  __asm__("" : "+x"(sum));
  return sum;
}
inline __m256i add32(__m256i sum, __m256i product) {
  sum = _mm256_add_epi32(sum, product);
  __asm__("" : "+x"(sum));
  return sum;
}

// 32 bytes of every line: half of the rows.
struct Ymm {
  using Int = __m256i;
  static Int load(const uint8_t* p) { return load256(p); }
  static Int low(Int b, int mask) { return _mm256_and_si256(b, _mm256_set1_epi8(static_cast<char>(mask))); }
  static Int either(Int a, Int b) { return _mm256_or_si256(a, b); }
  template <int shift>
  static Int field(Int b, int mask) {
    return low(_mm256_srli_epi16(b, shift), mask);
  }
};

// The eight vectors of a block, 32 of their 64 bytes; `planes` points at the half's bytes of the first plane.
template <int bits>
inline void unpack_half(const uint8_t* planes, __m256i* v) {
  unpack_planes<Ymm, bits>(planes, v);
}

// Eight f16 values to f32.
inline __m256 load_half8(const uint8_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }

// The two sub-scales (low and high 16 bits of a lane) of 8 rows; ones for types without.
struct SubScales {
  __m256i scale, min;
};
template <WeightType type>
inline SubScales load_sub_scales(const uint8_t* sub, size_t half) {
  SubScales out{_mm256_set1_epi16(1), _mm256_set1_epi16(1)};
  if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) {
    const __m256i twice = _mm256_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13,  //
                                           0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13);
    const auto widen = [twice](const uint8_t* p) {
      return _mm256_shuffle_epi8(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))), twice);
    };
    out.scale = widen(sub + 8 * half);
    out.min = widen(sub + 16 + 8 * half);
  } else if constexpr (type == WeightType::kQ2_K) {
    const __m256i both = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sub + 16 * half)));
    out.scale = _mm256_and_si256(both, _mm256_set1_epi16(15));
    out.min = _mm256_srli_epi16(both, 4);
  } else if constexpr (type == WeightType::kQ3_K || type == WeightType::kQ6_K) {
    out.scale = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sub + 16 * half)));
  }
  return out;
}

// Start values of the 16-bit sums from -(sum of a) of both halves of 16 columns.
template <WeightType type>
inline __m256i start_sum(__m256i neg_sum) {
  constexpr int shift = arithmetic(type).bias_shift;
  if constexpr (shift < 0) return _mm256_setzero_si256();
  return _mm256_slli_epi16(neg_sum, shift < 0 ? 0 : shift);
}

// 16-bit sums times sub-scales to the 32-bit block sum. `start` is what the sums started with.
template <WeightType type>
inline __m256i block_sum(__m256i sums, __m256i start, __m256i scale) {
  const __m256i isum = _mm256_madd_epi16(sums, scale);
  if constexpr (arithmetic(type).restore) return _mm256_sub_epi32(isum, _mm256_madd_epi16(start, scale));
  return isum;
}

}  // namespace
}  // namespace minfer::cpu
