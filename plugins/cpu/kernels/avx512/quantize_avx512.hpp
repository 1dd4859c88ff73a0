// Activations to 8-bit blocks. Included by the files of avx512/ only.
#pragma once

#include "kernels/avx512/block_avx512.hpp"

namespace minfer::cpu {
namespace {

inline bool quantize_block(const float* x, Q8Block* out) {
  const __m512 v0 = _mm512_loadu_ps(x), v1 = _mm512_loadu_ps(x + 16);
  // As integers the magnitudes compare like floats, with infinity and every NaN above the finite ones.
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const int largest = _mm512_reduce_max_epi32(_mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(v0), magnitude),  //
                                                               _mm512_and_si512(_mm512_castps_si512(v1), magnitude)));
  if (largest >= 0x7f800000) return false;
  float amax;
  std::memcpy(&amax, &largest, sizeof amax);
  if (amax < 0x1p-100f) {
    std::memset(out, 0, sizeof *out);
    return true;
  }
  const __m512 id = _mm512_set1_ps(127.0f / amax);
  const __m128i first = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(v0, id)));  // columns 0..15
  const __m128i second = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(v1, id)));
  const __m128i low = _mm_unpacklo_epi16(first, second), high = _mm_unpackhi_epi16(first, second);  // storage order
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out->q), low);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out->q + 16), high);

  // 16-bit sums of byte pairs: in every dword the two 16-column halves side by side.
  const auto sum8 = [](__m128i q) {
    __m128i sums = _mm_maddubs_epi16(_mm_set1_epi8(1), q);
    sums = _mm_add_epi16(sums, _mm_shuffle_epi32(sums, 0x4e));
    return _mm_add_epi16(sums, _mm_shuffle_epi32(sums, 0xb1));
  };
  out->d = amax / 127.0f;
  store_sums(sum8(low), sum8(high), out);
  return true;
}

inline bool quantize(const QuantizeArgs& args) {
  const size_t n_blocks = args.cols / kBlockCols;
  for (size_t token = args.token_begin; token < args.token_end; ++token) {
    const float* x = args.x + token * args.x_stride;
    for (size_t b = args.block_begin; b < args.block_end; ++b) {
      const size_t first = b / kSlabBlocks * kSlabBlocks;  // as q8_index, which other files share
      const size_t width = n_blocks - first < kSlabBlocks ? n_blocks - first : kSlabBlocks;
      if (!quantize_block(x + b * kBlockCols, args.out + first * args.n_tokens + token * width + (b - first))) return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace minfer::cpu
