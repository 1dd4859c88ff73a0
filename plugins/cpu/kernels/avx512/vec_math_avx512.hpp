// Sixteen-wide pieces that the AVX-512 kernels share. Included by files of avx512/ alone; everything is in an anonymous namespace, so
// that each of them keeps its own copy.
#pragma once

#include <immintrin.h>

#include "kernels/math_constants.hpp"

namespace minfer::cpu::avx512 {
namespace {

// exp_f32 of each lane: the operations of kernels/math.cpp in the same order. max and min return their second operand for NaN.
[[maybe_unused]] inline __m512 exp16(__m512 x) noexcept {
  const __m512 limited = _mm512_min_ps(_mm512_set1_ps(kExpHigh), _mm512_max_ps(_mm512_set1_ps(kExpLow), x));
  const __m512 magic = _mm512_set1_ps(kExpMagic);
  const __m512 shifted = _mm512_fmadd_ps(limited, _mm512_set1_ps(kLog2E), magic);
  const __m512 n = _mm512_sub_ps(shifted, magic);
  const __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Low), _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2High), limited));
  __m512 q = _mm512_set1_ps(kExpC4);
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpC3));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpC2));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpC1));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpC0));
  const __m512 p = _mm512_add_ps(_mm512_fmadd_ps(q, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1.0f));
  const __m512i exponent = _mm512_sub_epi32(_mm512_castps_si512(shifted), _mm512_castps_si512(magic));
  const __m512i half = _mm512_srai_epi32(exponent, 1);
  const __m512i bias = _mm512_set1_epi32(127);
  const __m512i first = _mm512_slli_epi32(_mm512_add_epi32(half, bias), 23);
  const __m512i second = _mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(exponent, half), bias), 23);
  return _mm512_mul_ps(_mm512_mul_ps(p, _mm512_castsi512_ps(first)), _mm512_castsi512_ps(second));
}

// The halving tree of 16 lanes.
[[maybe_unused]] inline float sum_lanes(__m512 v) noexcept {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The first n (0..16) lanes.
[[maybe_unused]] inline __mmask16 first_lanes(long long n) noexcept { return static_cast<__mmask16>((1u << n) - 1); }

}  // namespace
}  // namespace minfer::cpu::avx512
