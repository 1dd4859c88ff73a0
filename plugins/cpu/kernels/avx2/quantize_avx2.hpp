// Activations to 8-bit blocks. Included by matmul_avx2.cpp only.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/x86_blocks.hpp"

namespace minfer::cpu {
namespace {

inline bool quantize_block(const float* x, Q8Block* out) {
  const __m256 v0 = _mm256_loadu_ps(x), v1 = _mm256_loadu_ps(x + 8), v2 = _mm256_loadu_ps(x + 16), v3 = _mm256_loadu_ps(x + 24);
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256 a0 = _mm256_and_ps(v0, magnitude), a1 = _mm256_and_ps(v1, magnitude);
  const __m256 a2 = _mm256_and_ps(v2, magnitude), a3 = _mm256_and_ps(v3, magnitude);
  // As integers the magnitudes compare like floats, with infinity and every NaN above the finite ones.
  const auto max = [](__m256 a, __m256 b) { return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b))); };
  const __m256i m = _mm256_castps_si256(max(max(a0, a1), max(a2, a3)));
  __m128i m4 = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
  m4 = _mm_max_epi32(m4, _mm_shuffle_epi32(m4, 0x4e));
  m4 = _mm_max_epi32(m4, _mm_shuffle_epi32(m4, 0xb1));
  if (_mm_cvtsi128_si32(m4) >= 0x7f800000) return false;
  const float amax = _mm_cvtss_f32(_mm_castsi128_ps(m4));
  if (amax < 0x1p-100f) {
    std::memset(out, 0, sizeof *out);
    return true;
  }
  const __m256 id = _mm256_set1_ps(127.0f / amax);
  const auto round = [id](__m256 v) { return _mm256_cvtps_epi32(_mm256_mul_ps(v, id)); };
  // Bytes of columns 0-3 8-11 16-19 24-27 in one half, the others in the other half; then to storage order.
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(round(v0), round(v1)), _mm256_packs_epi32(round(v2), round(v3)));
  const __m256i order = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,  //
                                         0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  const __m256i q = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(bytes, order), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out->q), q);

  // 16-bit sums of byte pairs: in every dword the two 16-column halves side by side.
  __m256i sums = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0x4e));
  sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0xb1));
  out->d = amax / 127.0f;
  store_sums(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1), out);
  return true;
}

inline bool quantize(const QuantizeArgs& args) {
  const size_t n_blocks = args.cols / 32;
  for (size_t token = args.token_begin; token < args.token_end; ++token) {
    const float* x = args.x + token * args.x_stride;
    for (size_t b = args.block_begin; b < args.block_end; ++b) {
      const size_t first = b / kSlabBlocks * kSlabBlocks;
      const size_t width = n_blocks - first < kSlabBlocks ? n_blocks - first : kSlabBlocks;
      if (!quantize_block(x + b * 32, args.out + first * args.n_tokens + token * width + (b - first))) return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace minfer::cpu
