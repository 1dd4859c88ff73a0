// Attention for AVX-512: the arithmetic; the order of work is in x86_attention.hpp.
#include <immintrin.h>

#include "kernels/avx512/vec_math_avx512.hpp"
#include "kernels/op_tables.hpp"
#include "kernels/x86_attention.hpp"

namespace minfer::cpu::avx512 {
namespace {

// kRows rows by kPanels panels of 16 lanes, all accumulators in registers.
template <int kRows, int kPanels, bool kFromZero>
inline void fma_tile(const TileArgs& t, int64_t panel) noexcept {
  const float* b = t.b + panel * t.panel_stride;
  float* c = t.c + panel * kPanelFloats;
  __m512 acc[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) acc[r][p] = kFromZero ? _mm512_setzero_ps() : _mm512_loadu_ps(c + r * t.c_stride + p * kPanelFloats);
  for (int64_t k = 0; k < t.n; ++k) {
    __m512 lanes[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) lanes[p] = _mm512_loadu_ps(b + p * t.panel_stride + k * kPanelFloats);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 x = _mm512_set1_ps(t.a[r * t.a_stride + k]);
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_fmadd_ps(x, lanes[p], acc[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) _mm512_storeu_ps(c + r * t.c_stride + p * kPanelFloats, acc[r][p]);
}

// As many panels at once as registers allow, so that enough independent accumulators hide the latency of fma.
template <int kRows, bool kFromZero>
inline void fma_rows(const TileArgs& t, int64_t n_panels) noexcept {
  int64_t panel = 0;
  for (; panel + 4 <= n_panels; panel += 4) fma_tile<kRows, 4, kFromZero>(t, panel);
  for (; panel < n_panels; ++panel) fma_tile<kRows, 1, kFromZero>(t, panel);
}

struct Zmm {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kMostHeads = 8;
  static constexpr int vectors(int n_heads) noexcept { return n_heads <= 4 ? 4 : 2; }
  static Vector zero() noexcept { return _mm512_setzero_ps(); }
  static Vector load(const float* p) noexcept { return _mm512_loadu_ps(p); }
  static void store(float* p, Vector v) noexcept { _mm512_storeu_ps(p, v); }
  static Vector load_f16(const unsigned char* p) noexcept {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vector all(const float* p) noexcept { return _mm512_set1_ps(*p); }
  static Vector fma(Vector a, Vector b, Vector c) noexcept { return _mm512_fmadd_ps(a, b, c); }

  template <bool kFromZero>
  static void fma_panels(int n_rows, const TileArgs& t, int64_t n_panels) noexcept {
    switch (n_rows) {
      case 1: return fma_rows<1, kFromZero>(t, n_panels);
      case 2: return fma_rows<2, kFromZero>(t, n_panels);
      case 3: return fma_rows<3, kFromZero>(t, n_panels);
      case 4: return fma_rows<4, kFromZero>(t, n_panels);
      case 5: return fma_rows<5, kFromZero>(t, n_panels);
      case 6: return fma_rows<6, kFromZero>(t, n_panels);
    }
  }

  static void softmax(float* scores, Range range, float scale, float* m, float* l) noexcept {
    const __m512 minus_infinity = _mm512_set1_ps(-__builtin_inff());
    const __m512 scales = _mm512_set1_ps(scale);
    const int64_t begin = range.begin / 16 * 16;
    __m512 largest = minus_infinity;
    for (int64_t i = begin; i < range.end; i += 16) {
      const auto seen = static_cast<__mmask16>(first_lanes(smaller(range.end - i, 16)) & ~first_lanes(larger(range.begin - i, 0)));
      const __m512 s = _mm512_mask_mov_ps(minus_infinity, seen, _mm512_mul_ps(_mm512_loadu_ps(scores + i), scales));
      _mm512_storeu_ps(scores + i, s);
      largest = _mm512_max_ps(s, largest);
    }
    *m = _mm512_reduce_max_ps(largest);

    const __m512 all_m = _mm512_set1_ps(*m);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t i = begin; i < range.end; i += 16) {
      const __m512 e = exp16(_mm512_sub_ps(_mm512_loadu_ps(scores + i), all_m));
      _mm512_storeu_ps(scores + i, e);
      sum = _mm512_add_ps(sum, e);
    }
    *l = sum_lanes(sum);
  }

  static float exp(float x) noexcept { return _mm_cvtss_f32(_mm512_castps512_ps128(exp16(_mm512_set1_ps(x)))); }

  static void join(const float* o, const float* weights, int64_t n_chunks, float sum, int64_t head_dim, float* out) noexcept {
    const __m512 sums = _mm512_set1_ps(sum);
    for (int64_t d = 0; d < head_dim; d += 16) {
      __m512 total = _mm512_setzero_ps();
      for (int64_t c = 0; c < n_chunks; ++c)
        total = _mm512_fmadd_ps(_mm512_loadu_ps(o + c * head_dim + d), _mm512_set1_ps(weights[c]), total);
      _mm512_storeu_ps(out + d, _mm512_div_ps(total, sums));
    }
  }
};

}  // namespace

void attend(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept { attend_unit<Zmm>(args, unit, scratch); }

}  // namespace minfer::cpu::avx512
