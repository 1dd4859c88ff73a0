// Attention for AVX2 + FMA + F16C: the arithmetic; the order of work is in x86_attention.hpp.
#include <immintrin.h>

#include "kernels/avx2/vec_math.hpp"
#include "kernels/op_tables.hpp"
#include "kernels/x86_attention.hpp"

namespace minfer::cpu::avx2 {
namespace {

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

struct Ymm {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kMostHeads = 4;
  static constexpr int vectors(int n_heads) noexcept { return n_heads == 1 ? 8 : n_heads <= 3 ? 4 : 2; }
  static Vector zero() noexcept { return _mm256_setzero_ps(); }
  static Vector load(const float* p) noexcept { return _mm256_loadu_ps(p); }
  static void store(float* p, Vector v) noexcept { _mm256_storeu_ps(p, v); }
  static Vector load_f16(const unsigned char* p) noexcept { return load_f16x8(p); }
  static Vector all(const float* p) noexcept { return _mm256_broadcast_ss(p); }
  static Vector fma(Vector a, Vector b, Vector c) noexcept { return _mm256_fmadd_ps(a, b, c); }

  template <bool kFromZero>
  static void fma_panels(int n_rows, const TileArgs& t, int64_t n_panels) noexcept {
    avx2::fma_panels<kFromZero>(n_rows, t, n_panels);
  }

  static void softmax(float* scores, Range range, float scale, float* m, float* l) noexcept {
    const __m256 minus_infinity = _mm256_set1_ps(-__builtin_inff());
    const __m256 scales = _mm256_set1_ps(scale);
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int64_t begin = range.begin / 16 * 16;
    __m256 largest = minus_infinity;
    __m256 least = _mm256_set1_ps(__builtin_inff());  // of the vectors that are seen whole
    for (int64_t i = begin; i < range.end; i += 8) {
      __m256 s = _mm256_mul_ps(_mm256_loadu_ps(scores + i), scales);
      if (i < range.begin || i + 8 > range.end) {
        const __m256i position = _mm256_add_epi32(lane, _mm256_set1_epi32(static_cast<int>(i)));
        const __m256i outside = _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(range.begin)), position),
                                                _mm256_cmpgt_epi32(position, _mm256_set1_epi32(static_cast<int>(range.end - 1))));
        s = _mm256_blendv_ps(s, minus_infinity, _mm256_castsi256_ps(outside));
      } else {
        least = _mm256_min_ps(s, least);
      }
      _mm256_storeu_ps(scores + i, s);
      largest = _mm256_max_ps(s, largest);
    }
    __m128 max4 = _mm_max_ps(_mm256_castps256_ps128(largest), _mm256_extractf128_ps(largest, 1));
    max4 = _mm_max_ps(max4, _mm_movehl_ps(max4, max4));
    *m = _mm_cvtss_f32(_mm_max_ss(max4, _mm_movehdup_ps(max4)));

    const __m256 all_m = _mm256_set1_ps(*m);
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    // True only where every s - m > -86 (s > the rounded m - 86 means s > m - 86); an infinite score makes it false.
    const bool near = _mm256_movemask_ps(_mm256_cmp_ps(least, _mm256_set1_ps(*m - 86.0f), _CMP_GT_OQ)) == 0xFF;
    for (int64_t i = begin; i < range.end; i += 16) {
      if (near && i >= range.begin && i + 16 <= range.end) {
        const __m256 e0 = exp8_near_zero(_mm256_sub_ps(_mm256_loadu_ps(scores + i), all_m));
        const __m256 e1 = exp8_near_zero(_mm256_sub_ps(_mm256_loadu_ps(scores + i + 8), all_m));
        _mm256_storeu_ps(scores + i, e0);
        _mm256_storeu_ps(scores + i + 8, e1);
        low = _mm256_add_ps(low, e0);
        high = _mm256_add_ps(high, e1);
        continue;
      }
      const __m256 e0 = exp8(_mm256_sub_ps(_mm256_loadu_ps(scores + i), all_m));
      _mm256_storeu_ps(scores + i, e0);
      low = _mm256_add_ps(low, e0);
      if (i + 8 < range.end) {
        const __m256 e1 = exp8(_mm256_sub_ps(_mm256_loadu_ps(scores + i + 8), all_m));
        _mm256_storeu_ps(scores + i + 8, e1);
        high = _mm256_add_ps(high, e1);
      }
    }
    *l = sum_lanes(low, high);
  }

  static float exp(float x) noexcept { return _mm256_cvtss_f32(exp8(_mm256_set1_ps(x))); }

  static void join(const float* o, const float* weights, int64_t n_chunks, float sum, int64_t head_dim, float* out) noexcept {
    const __m256 sums = _mm256_set1_ps(sum);
    for (int64_t d = 0; d < head_dim; d += 8) {
      __m256 total = _mm256_setzero_ps();
      for (int64_t c = 0; c < n_chunks; ++c)
        total = _mm256_fmadd_ps(_mm256_loadu_ps(o + c * head_dim + d), _mm256_set1_ps(weights[c]), total);
      _mm256_storeu_ps(out + d, _mm256_div_ps(total, sums));
    }
  }
};

}  // namespace

void attend(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept { attend_unit<Ymm>(args, unit, scratch); }

}  // namespace minfer::cpu::avx2
