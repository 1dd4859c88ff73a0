// The two inner pieces of AVX2 attention: turning a stored block of K or V into float panels, and the register-tiled
// multiply-accumulate that both scores and P * V are made of. Anonymous namespace: see vec_math.hpp.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/kv_layout.hpp"

namespace minfer::cpu::avx2 {
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

// c[r][lane] = fma over k ascending of a[r][k] * b[k][lane], starting from 0 or from c.
// a: rows of stride a_stride. b: panels [n][16], panel_stride floats apart. c: rows of stride c_stride, panel p at c + 16 p.
struct TileArgs {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t panel_stride;
  int64_t n;
  float* c;
  int64_t c_stride;
};

// kRows rows by kVectors * 8 lanes, all accumulators in registers.
template <int kRows, int kVectors, bool kFromZero>
inline void fma_tile(const TileArgs& t, int64_t panel) noexcept {
  const float* b = t.b + panel * t.panel_stride;
  float* c = t.c + panel * kPanelFloats;
  __m256 acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) acc[r][v] = kFromZero ? _mm256_setzero_ps() : _mm256_loadu_ps(c + r * t.c_stride + 8 * v);
  }
  for (int64_t k = 0; k < t.n; ++k) {
    if constexpr (kRows > kVectors) {  // few vectors: keep them, broadcast row by row
      __m256 lanes[kVectors];
      for (int v = 0; v < kVectors; ++v) lanes[v] = _mm256_loadu_ps(b + v / 2 * t.panel_stride + k * kPanelFloats + v % 2 * 8);
      for (int r = 0; r < kRows; ++r) {
        const __m256 x = _mm256_broadcast_ss(t.a + r * t.a_stride + k);
        for (int v = 0; v < kVectors; ++v) acc[r][v] = _mm256_fmadd_ps(x, lanes[v], acc[r][v]);
      }
    } else {
      __m256 x[kRows];
      for (int r = 0; r < kRows; ++r) x[r] = _mm256_broadcast_ss(t.a + r * t.a_stride + k);
      for (int v = 0; v < kVectors; ++v) {
        const __m256 lanes = _mm256_loadu_ps(b + v / 2 * t.panel_stride + k * kPanelFloats + v % 2 * 8);
        for (int r = 0; r < kRows; ++r) acc[r][v] = _mm256_fmadd_ps(x[r], lanes, acc[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) _mm256_storeu_ps(c + r * t.c_stride + 8 * v, acc[r][v]);
  }
}

// Few rows take more lanes at once, so that enough independent accumulators hide the latency of fma.
template <int kRows, bool kFromZero>
inline void fma_rows(const TileArgs& t, int64_t n_panels) noexcept {
  int64_t panel = 0;
  if constexpr (kRows == 1) {
    for (; panel + 4 <= n_panels; panel += 4) fma_tile<1, 8, kFromZero>(t, panel);
  }
  if constexpr (kRows <= 3) {
    for (; panel + 2 <= n_panels; panel += 2) fma_tile<kRows, 4, kFromZero>(t, panel);
  }
  for (; panel < n_panels; ++panel) fma_tile<kRows, 2, kFromZero>(t, panel);
}

constexpr int kTileRows = 6;

template <bool kFromZero>
[[maybe_unused]] void fma_panels(int n_rows, const TileArgs& t, int64_t n_panels) noexcept {
  switch (n_rows) {
    case 1: return fma_rows<1, kFromZero>(t, n_panels);
    case 2: return fma_rows<2, kFromZero>(t, n_panels);
    case 3: return fma_rows<3, kFromZero>(t, n_panels);
    case 4: return fma_rows<4, kFromZero>(t, n_panels);
    case 5: return fma_rows<5, kFromZero>(t, n_panels);
    case 6: return fma_rows<6, kFromZero>(t, n_panels);
  }
}

}  // namespace
}  // namespace minfer::cpu::avx2
