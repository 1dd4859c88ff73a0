// AVX-512 on a CPU that has only AVX2: the 512-bit intrinsics that the kernels use, by SIMDe or, where its version 0.7.4 has none, by
// two 256-bit halves. Included before a kernel file of plugins/cpu/kernels/avx512 by the compiler's option -include, so that the
// file itself is the one that goes into the plugin. Its tables get names of their own beside the native ones.
#pragma once

#include <immintrin.h>
#include <simde/x86/avx512.h>

#include <cstdint>
#include <cstring>

#define kMatmulAvx512 kMatmulAvx512BySimde
#define kMatmulAvx512Vnni kMatmulAvx512VnniBySimde
#define avx512 avx512_by_simde  // the namespace of the other operations

#define __m512 simde__m512
#define __m512i simde__m512i

// Those with an #undef are macros of the compiler's header when it does not optimise.
#define _mm512_abs_epi8 simde_mm512_abs_epi8
#define _mm512_add_epi16 simde_mm512_add_epi16
#define _mm512_add_epi32 simde_mm512_add_epi32
#define _mm512_add_ps simde_mm512_add_ps
#define _mm512_and_si512 simde_mm512_and_si512
#define _mm512_castps512_ps128 simde_mm512_castps512_ps128
#define _mm512_castps512_ps256 simde_mm512_castps512_ps256
#define _mm512_castps_si512 simde_mm512_castps_si512
#define _mm512_castsi512_ps simde_mm512_castsi512_ps
#define _mm512_cvtepi8_epi16 simde_mm512_cvtepi8_epi16
#define _mm512_div_ps simde_mm512_div_ps
#define _mm512_fmadd_ps simde_mm512_fmadd_ps
#define _mm512_fmsub_ps simde_mm512_fmsub_ps
#define _mm512_fnmadd_ps simde_mm512_fnmadd_ps
#define _mm512_loadu_ps simde_mm512_loadu_ps
#define _mm512_loadu_si512 simde_mm512_loadu_si512
#define _mm512_madd_epi16 simde_mm512_madd_epi16
#define _mm512_maddubs_epi16 simde_mm512_maddubs_epi16
#define _mm512_mask_mov_ps simde_mm512_mask_mov_ps
#define _mm512_mask_sub_epi8 simde_mm512_mask_sub_epi8
#define _mm512_max_epi32 simde_mm512_max_epi32
#define _mm512_max_ps simde_mm512_max_ps
#define _mm512_min_ps simde_mm512_min_ps
#define _mm512_movepi8_mask simde_mm512_movepi8_mask
#define _mm512_mul_ps simde_mm512_mul_ps
#define _mm512_or_si512 simde_mm512_or_si512
#define _mm512_permutexvar_ps simde_mm512_permutexvar_ps
#define _mm512_set1_epi16 simde_mm512_set1_epi16
#define _mm512_set1_epi32 simde_mm512_set1_epi32
#define _mm512_set1_epi8 simde_mm512_set1_epi8
#define _mm512_set1_ps simde_mm512_set1_ps
#undef _mm512_setr_epi32
#define _mm512_setr_epi32 simde_mm512_setr_epi32
#define _mm512_setzero_ps simde_mm512_setzero_ps
#define _mm512_setzero_si512 simde_mm512_setzero_si512
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 simde_mm512_slli_epi32
#undef _mm512_srai_epi16
#define _mm512_srai_epi16 simde_mm512_srai_epi16
#undef _mm512_srli_epi16
#define _mm512_srli_epi16 simde_mm512_srli_epi16
#define _mm512_storeu_ps simde_mm512_storeu_ps
#define _mm512_sub_epi32 simde_mm512_sub_epi32
#define _mm512_sub_ps simde_mm512_sub_ps
#define _mm512_xor_si512 simde_mm512_xor_si512

namespace minfer::cpu {
namespace {

struct Halves {
  __m256i low, high;
};
inline Halves halves(__m512i v) {
  Halves out;
  std::memcpy(&out, &v, sizeof out);
  return out;
}
inline Halves halves(__m512 v) {
  Halves out;
  std::memcpy(&out, &v, sizeof out);
  return out;
}
inline __m512i whole_int(__m256i low, __m256i high) {
  const Halves both{low, high};
  __m512i out;
  std::memcpy(&out, &both, sizeof out);
  return out;
}
inline __m512 whole(__m256 low, __m256 high) {
  const Halves both{_mm256_castps_si256(low), _mm256_castps_si256(high)};
  __m512 out;
  std::memcpy(&out, &both, sizeof out);
  return out;
}

[[maybe_unused]] inline __m512 by_halves_cvtepi32_ps(__m512i v) {
  return whole(_mm256_cvtepi32_ps(halves(v).low), _mm256_cvtepi32_ps(halves(v).high));
}
[[maybe_unused]] inline __m512i by_halves_cvtps_epi32(__m512 v) {
  return whole_int(_mm256_cvtps_epi32(_mm256_castsi256_ps(halves(v).low)), _mm256_cvtps_epi32(_mm256_castsi256_ps(halves(v).high)));
}
[[maybe_unused]] inline __m512 by_halves_cvtph_ps(__m256i v) {
  return whole(_mm256_cvtph_ps(_mm256_castsi256_si128(v)), _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1)));
}
[[maybe_unused]] inline __m512i by_halves_cvtepu8_epi32(__m128i v) {
  return whole_int(_mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(v, v)));
}
[[maybe_unused]] inline __m512i by_halves_cvtepu8_epi16(__m256i v) {
  return whole_int(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(v)), _mm256_cvtepu8_epi16(_mm256_extracti128_si256(v, 1)));
}
[[maybe_unused]] inline __m512i by_halves_cvtepu16_epi32(__m256i v) {
  return whole_int(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)));
}
// SIMDe has the dot products, but so that the kernels take a minute to compile.
inline __m256i half_dpbusd(__m256i sum, __m256i a, __m256i b) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, _mm256_set1_epi16(255)), _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}
[[maybe_unused]] inline __m512i by_halves_dpbusd_epi32(__m512i sum, __m512i a, __m512i b) {
  return whole_int(half_dpbusd(halves(sum).low, halves(a).low, halves(b).low),
                   half_dpbusd(halves(sum).high, halves(a).high, halves(b).high));
}
[[maybe_unused]] inline __m512i by_halves_dpwssd_epi32(__m512i sum, __m512i a, __m512i b) {
  return simde_mm512_add_epi32(sum, simde_mm512_madd_epi16(a, b));
}
[[maybe_unused]] inline __m512i by_halves_srai_epi32(__m512i v, unsigned n) {
  return whole_int(_mm256_srai_epi32(halves(v).low, static_cast<int>(n)), _mm256_srai_epi32(halves(v).high, static_cast<int>(n)));
}
[[maybe_unused]] inline __m256 half_of(__m512 v, int half) { return _mm256_castsi256_ps(half == 0 ? halves(v).low : halves(v).high); }
[[maybe_unused]] inline __m128i lane_by_lane_cvtepi32_epi8(__m512i v) {
  int32_t lanes[16];
  int8_t bytes[16];
  std::memcpy(lanes, &v, sizeof lanes);
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<int8_t>(lanes[i]);
  __m128i out;
  std::memcpy(&out, bytes, sizeof out);
  return out;
}
[[maybe_unused]] inline int lane_by_lane_reduce_max_epi32(__m512i v) {
  int lanes[16];
  std::memcpy(lanes, &v, sizeof lanes);
  int largest = lanes[0];
  for (int lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}
[[maybe_unused]] inline float lane_by_lane_reduce_max_ps(__m512 v) {
  float lanes[16];
  simde_mm512_storeu_ps(lanes, v);
  float largest = lanes[0];
  for (float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}
[[maybe_unused]] inline __m512 lane_by_lane_maskz_loadu_ps(unsigned mask, const float* p) {
  float lanes[16] = {};
  for (int i = 0; i < 16; ++i)
    if (mask >> i & 1) lanes[i] = p[i];
  return simde_mm512_loadu_ps(lanes);
}
[[maybe_unused]] inline void lane_by_lane_mask_storeu_ps(float* p, unsigned mask, __m512 v) {
  float lanes[16];
  simde_mm512_storeu_ps(lanes, v);
  for (int i = 0; i < 16; ++i)
    if (mask >> i & 1) p[i] = lanes[i];
}

}  // namespace
}  // namespace minfer::cpu

#define _mm512_cvtepi32_ps by_halves_cvtepi32_ps
#define _mm512_cvtps_epi32 by_halves_cvtps_epi32
#define _mm512_cvtph_ps by_halves_cvtph_ps
#define _mm512_cvtepu8_epi32 by_halves_cvtepu8_epi32
#define _mm512_cvtepu8_epi16 by_halves_cvtepu8_epi16
#define _mm512_cvtepu16_epi32 by_halves_cvtepu16_epi32
#define _mm512_dpbusd_epi32 by_halves_dpbusd_epi32
#define _mm512_dpwssd_epi32 by_halves_dpwssd_epi32
#define _mm512_cvtepi32_epi8 lane_by_lane_cvtepi32_epi8
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 by_halves_srai_epi32
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps half_of
#define _mm512_reduce_max_ps lane_by_lane_reduce_max_ps
#define _mm512_reduce_max_epi32 lane_by_lane_reduce_max_epi32
#define _mm512_maskz_loadu_ps lane_by_lane_maskz_loadu_ps
#define _mm512_mask_storeu_ps lane_by_lane_mask_storeu_ps
