// Eight-wide pieces that the AVX2 kernels share. Included by files compiled for AVX2 alone; everything is in an anonymous
// namespace, so that each of them keeps its own copy.
#pragma once

#include <immintrin.h>

#include "kernels/math_constants.hpp"

namespace minfer::cpu::avx2 {
namespace {

// e^r of what is left of the argument, |r| <= ln(2) / 2 or so.
[[maybe_unused]] inline __m256 exp8_fraction(__m256 r) noexcept {
  __m256 q = _mm256_set1_ps(kExpC4);
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpC3));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpC2));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpC1));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpC0));
  return _mm256_add_ps(_mm256_fmadd_ps(q, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
}

// exp_f32 of each lane: the operations of kernels/math.cpp in the same order. max and min return their second operand for NaN.
[[maybe_unused]] inline __m256 exp8(__m256 x) noexcept {
  const __m256 limited = _mm256_min_ps(_mm256_set1_ps(kExpHigh), _mm256_max_ps(_mm256_set1_ps(kExpLow), x));
  const __m256 magic = _mm256_set1_ps(kExpMagic);
  const __m256 shifted = _mm256_fmadd_ps(limited, _mm256_set1_ps(kLog2E), magic);
  const __m256 n = _mm256_sub_ps(shifted, magic);
  const __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), limited));
  const __m256 p = exp8_fraction(r);
  const __m256i exponent = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(magic));
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(exponent, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

// exp8 where every lane lies in -86..0: nothing to limit, and results are normal, so that one addition sets their exponents.
[[maybe_unused]] inline __m256 exp8_near_zero(__m256 x) noexcept {
  const __m256 magic = _mm256_set1_ps(kExpMagic);
  const __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(kLog2E), magic);
  const __m256 n = _mm256_sub_ps(shifted, magic);
  const __m256 p = exp8_fraction(_mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), x)));
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
}

// The halving tree of 16 lanes: low holds lanes 0..7, high lanes 8..15.
[[maybe_unused]] inline float sum_lanes(__m256 low, __m256 high) noexcept {
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// All bits set in the first n (0..8) lanes.
[[maybe_unused]] inline __m256i first_lanes(long long n) noexcept {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace
}  // namespace minfer::cpu::avx2
