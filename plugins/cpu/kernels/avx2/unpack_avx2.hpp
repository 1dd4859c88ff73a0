// Reads packed blocks into registers: 8 rows (half a group) at a time. Included by matmul_avx2.cpp only.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/matmul.hpp"
#include "kernels/packed_format.hpp"

namespace minfer::cpu {
namespace {

inline __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline __m256i broadcast32(const void* p) {
  int value;
  std::memcpy(&value, p, 4);
  return _mm256_set1_epi32(value);
}

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

// How the integer part of a type is computed with 16-bit sums of byte products (see products in gemm_avx2.hpp).
struct Arithmetic {
  // The sums start at -(bias * sum of a), so that they are those of (stored - bias) * a. Partial sums may wrap around; the
  // final one fits: 16 products of 16 * 127 (5 bits), 8 of 32 * 127 (6 bits), 16 of 15 * 127 (4 bits).
  int bias_shift;   // log2 of the bias, or -1
  bool restore;     // the type has no offset: bias * sum of a is added back in 32 bits
  bool sub_scales;  // K types
};

constexpr Arithmetic arithmetic(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0: return {3, false, false};
    case WeightType::kQ5_0: return {4, false, false};
    case WeightType::kQ5_1: return {4, true, false};
    case WeightType::kQ2_K: return {-1, false, true};
    case WeightType::kQ3_K: return {2, false, true};
    case WeightType::kQ4_K: return {-1, false, true};
    case WeightType::kQ5_K: return {4, true, true};
    case WeightType::kQ6_K: return {5, false, true};
    default: return {-1, false, false};
  }
}

// The eight vectors of a block, 32 of their 64 bytes; `planes` points at the half's bytes of the first plane.
template <int bits>
inline void unpack_half(const uint8_t* planes, __m256i* v) {
  const auto plane = [planes](int i) { return load256(planes + 64 * i); };
  const auto field = [](__m256i b, int shift, int mask) {  // bits move down; those of the neighbour byte are masked away
    return _mm256_and_si256(_mm256_srli_epi16(b, shift), _mm256_set1_epi8(static_cast<char>(mask)));
  };
  const auto low = [](__m256i b, int mask) { return _mm256_and_si256(b, _mm256_set1_epi8(static_cast<char>(mask))); };
  const auto either = [](__m256i a, __m256i b) { return _mm256_or_si256(a, b); };
  if constexpr (bits == 8) {
    for (int j = 0; j < 8; ++j) v[j] = plane(j);
  } else if constexpr (bits == 6) {
    for (int h = 0; h < 2; ++h) {
      const __m256i b0 = plane(3 * h), b1 = plane(3 * h + 1), b2 = plane(3 * h + 2);
      v[4 * h] = low(b0, 63);
      v[4 * h + 1] = low(b1, 63);
      v[4 * h + 2] = low(b2, 63);
      v[4 * h + 3] = either(either(field(b0, 6, 3), field(b1, 4, 12)), field(b2, 2, 48));
    }
  } else if constexpr (bits == 5) {
    const __m256i b0 = plane(0), b1 = plane(1), b2 = plane(2), b3 = plane(3), b4 = plane(4);
    v[0] = low(b0, 31);
    v[1] = low(b1, 31);
    v[2] = low(b2, 31);
    v[3] = low(b3, 31);
    v[4] = low(b4, 31);
    v[5] = either(field(b0, 5, 7), field(b3, 2, 24));
    v[6] = either(field(b1, 5, 7), field(b4, 2, 24));
    v[7] = either(either(field(b2, 5, 7), field(b3, 4, 8)), field(b4, 3, 16));
  } else if constexpr (bits == 4) {
    for (int j = 0; j < 4; ++j) {
      const __m256i b = plane(j);
      v[j] = low(b, 15);
      v[j + 4] = field(b, 4, 15);
    }
  } else if constexpr (bits == 3) {
    const __m256i b0 = plane(0), b1 = plane(1), b2 = plane(2);
    v[0] = low(b0, 7);
    v[1] = field(b0, 3, 7);
    v[2] = low(b1, 7);
    v[3] = field(b1, 3, 7);
    v[4] = low(b2, 7);
    v[5] = field(b2, 3, 7);
    v[6] = either(field(b0, 6, 3), field(b1, 4, 4));
    v[7] = either(field(b1, 7, 1), field(b2, 5, 6));
  } else {
    static_assert(bits == 2);
    for (int i = 0; i < 2; ++i) {
      const __m256i b = plane(i);
      v[4 * i] = low(b, 3);
      for (int s = 1; s < 4; ++s) v[4 * i + s] = field(b, 2 * s, 3);
    }
  }
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
