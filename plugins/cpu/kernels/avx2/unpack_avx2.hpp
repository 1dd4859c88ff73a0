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

// Bytes p[8 half .. 8 half + 7] of 16, byte r in the dword of row r: once, or in both of its 16-bit halves.
template <bool twice>
inline __m256i spread_bytes(const uint8_t* p, size_t half) {
  constexpr int z = -128;  // gives zero
  constexpr auto lane = [](int r) { return twice ? r : z; };
  const __m256i order = _mm256_setr_epi8(0, z, lane(0), z, 1, z, lane(1), z, 2, z, lane(2), z, 3, z, lane(3), z,  //
                                         4, z, lane(4), z, 5, z, lane(5), z, 6, z, lane(6), z, 7, z, lane(7), z);
  long long bytes;
  std::memcpy(&bytes, p + 8 * half, sizeof bytes);
  return _mm256_shuffle_epi8(_mm256_set1_epi64x(bytes), order);
}

// The two sub-scales (low and high 16 bits of a lane) of 8 rows; ones for types without.
template <WeightType type>
inline __m256i load_sub_scales(const uint8_t* sub, size_t half) {
  const auto bytes = [sub, half] { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(sub + 16 * half)); };
  if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) return spread_bytes<true>(sub, half);
  if constexpr (type == WeightType::kQ2_K) return _mm256_and_si256(_mm256_cvtepu8_epi16(bytes()), _mm256_set1_epi16(15));
  if constexpr (type == WeightType::kQ3_K || type == WeightType::kQ6_K) return _mm256_cvtepi8_epi16(bytes());
  return _mm256_set1_epi16(1);
}

// Sub-mins of 8 rows: as floats for Q4_K and Q5_K; Q2_K: two 16-bit integers in each lane.
inline __m256 load_mins(const uint8_t* sub, size_t half) { return _mm256_cvtepi32_ps(spread_bytes<false>(sub + 16, half)); }
inline __m256i load_min_pairs(const uint8_t* sub, size_t half) {
  return _mm256_srli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sub + 16 * half))), 4);
}

// Where the 16-bit sums of a part of the columns begin, for types with has_start.
template <WeightType type>
inline __m256i start_sum(const Q8Block& a, int part) {
  if constexpr (sum_parts(type) == 2) return broadcast32(a.start6[part]);
  return _mm256_srai_epi16(broadcast32(a.start5), start_shift(type));
}

// Two 16-bit values per lane: -(sum of a) over both halves of 16 columns.
inline __m256i neg_sums(const Q8Block& a) { return _mm256_srai_epi16(broadcast32(a.start5), 4); }

}  // namespace
}  // namespace minfer::cpu
