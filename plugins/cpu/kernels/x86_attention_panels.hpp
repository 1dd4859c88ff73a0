// Turns a stored block of K or V into float panels, 8 values at a time: shared by the attention kernels of both vector widths.
// Anonymous namespace: each file keeps its own copy, compiled for its own instruction set.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/kv_layout.hpp"

namespace minfer::cpu {
namespace {

constexpr int kPanelFloats = 16;  // floats in a row of a panel

inline __m256 load_f16x8(const unsigned char* p) noexcept { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }

inline __m256 load_i8x8(const unsigned char* p) noexcept {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

// K panels panel_begin..panel_end-1 of a stored block -> panels[4][head_dim][16].
[[maybe_unused]] void k_to_panels(const KvLayout& layout, const unsigned char* block, int64_t panel_begin, int64_t panel_end,
                                  float* panels) noexcept {
  const int64_t panel_bytes = kKvPanel * kv_head_row_bytes(layout);
  const int64_t panel_size = kPanelFloats * int64_t{layout.head_dim};
  const unsigned char* src = block + panel_begin * panel_bytes;
  float* dst = panels + panel_begin * panel_size;
  const int64_t n = (panel_end - panel_begin) * panel_size;
  switch (layout.format) {
    case KvFormat::kF32: std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float)); return;
    case KvFormat::kF16:
      for (int64_t i = 0; i < n; i += 16) {
        _mm256_storeu_ps(dst + i, load_f16x8(src + 2 * i));
        _mm256_storeu_ps(dst + i + 8, load_f16x8(src + 2 * i + 16));
      }
      return;
    case KvFormat::kQ8_0:
      for (int64_t i = 0; i < n; i += kQ8Group * kPanelFloats, src += kKvPanel * kQ8Bytes) {
        const __m256 d0 = load_f16x8(src);
        const __m256 d1 = load_f16x8(src + 16);
        const unsigned char* q = src + 2 * kKvPanel;
        for (int64_t j = 0; j < kQ8Group; ++j, q += kKvPanel) {
          _mm256_storeu_ps(dst + i + 16 * j, _mm256_mul_ps(d0, load_i8x8(q)));
          _mm256_storeu_ps(dst + i + 16 * j + 8, _mm256_mul_ps(d1, load_i8x8(q + 8)));
        }
      }
      return;
  }
}

// V rows row_begin..row_end-1 of a stored block -> panels[head_dim / 16][64][16].
[[maybe_unused]] void v_to_panels(const KvLayout& layout, const unsigned char* block, int64_t row_begin, int64_t row_end,
                                  float* panels) noexcept {
  const int64_t row_bytes = kv_head_row_bytes(layout);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const unsigned char* src = block + row * row_bytes;
    float* dst = panels + row * kPanelFloats;
    for (int64_t d = 0; d < layout.head_dim; d += kPanelFloats, dst += kKvBlock * kPanelFloats) {
      switch (layout.format) {
        case KvFormat::kF32: std::memcpy(dst, src + 4 * d, kPanelFloats * sizeof(float)); break;
        case KvFormat::kF16:
          _mm256_storeu_ps(dst, load_f16x8(src + 2 * d));
          _mm256_storeu_ps(dst + 8, load_f16x8(src + 2 * d + 16));
          break;
        case KvFormat::kQ8_0: {
          const unsigned char* group = src + d / kQ8Group * kQ8Bytes;
          const __m256 scale = _mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(group[0] | group[1] << 8)));
          const unsigned char* q = group + 2 + d % kQ8Group;
          _mm256_storeu_ps(dst, _mm256_mul_ps(scale, load_i8x8(q)));
          _mm256_storeu_ps(dst + 8, _mm256_mul_ps(scale, load_i8x8(q + 8)));
          break;
        }
      }
    }
  }
}

}  // namespace
}  // namespace minfer::cpu
