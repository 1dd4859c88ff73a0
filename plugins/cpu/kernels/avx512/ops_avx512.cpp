// Element-wise and row operations for AVX-512: the bits of kernels/baseline/ops_baseline.cpp.
#include <immintrin.h>

#include "kernels/avx512/vec_math_avx512.hpp"
#include "kernels/op_tables.hpp"

namespace minfer::cpu::avx512 {
namespace {

// Some or all lanes of a vector in memory. Lanes left out are loaded as 0 and not stored.
struct Lanes {
  __mmask16 mask;
  __m512 load(const float* p) const noexcept { return _mm512_maskz_loadu_ps(mask, p); }
  void store(float* p, __m512 v) const noexcept { _mm512_mask_storeu_ps(p, mask, v); }
};
struct AllLanes {
  static __m512 load(const float* p) noexcept { return _mm512_loadu_ps(p); }
  static void store(float* p, __m512 v) noexcept { _mm512_storeu_ps(p, v); }
};
// Calls body(offset, lanes) for sixteen elements at a time; the last ones through a mask.
template <class Body>
inline void for_each_sixteen(int64_t n, Body body) noexcept {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, AllLanes{});
  if (i < n) body(i, Lanes{first_lanes(n - i)});
}

void rms_norm(const float* x, const float* weight, float* y, int64_t n_rows, int64_t n, float eps) noexcept {
  for (int64_t row = 0; row < n_rows; ++row, x += n, y += n) {
    __m512 sum = _mm512_setzero_ps();
    for_each_sixteen(n, [x, &sum](int64_t i, auto lanes) {  // a lane that gets no element adds 0 to its sum, which cannot change it
      const __m512 v = lanes.load(x + i);
      sum = _mm512_fmadd_ps(v, v, sum);
    });
    const float mean = sum_lanes(sum) / static_cast<float>(n);
    const float factor = 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
    const __m512 factors = _mm512_set1_ps(factor);
    for_each_sixteen(n, [=](int64_t k, auto lanes) {
      lanes.store(y + k, _mm512_mul_ps(_mm512_mul_ps(lanes.load(x + k), factors), lanes.load(weight + k)));
    });
  }
}

void add(const float* a, const float* b, float* y, int64_t n) noexcept {
  for_each_sixteen(n, [=](int64_t i, auto lanes) { lanes.store(y + i, _mm512_add_ps(lanes.load(a + i), lanes.load(b + i))); });
}

void mul(const float* a, const float* b, float* y, int64_t n) noexcept {
  for_each_sixteen(n, [=](int64_t i, auto lanes) { lanes.store(y + i, _mm512_mul_ps(lanes.load(a + i), lanes.load(b + i))); });
}

void scale(const float* x, float factor, float* y, int64_t n) noexcept {
  const __m512 factors = _mm512_set1_ps(factor);
  for_each_sixteen(n, [=](int64_t i, auto lanes) { lanes.store(y + i, _mm512_mul_ps(lanes.load(x + i), factors)); });
}

void exp(const float* x, float* y, int64_t n) noexcept {
  for_each_sixteen(n, [=](int64_t i, auto lanes) { lanes.store(y + i, exp16(lanes.load(x + i))); });
}

inline __m512 silu16(__m512 x) noexcept {
  const __m512 negative = _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(-0x7fffffff - 1)));
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp16(negative)));
}

void silu(const float* x, float* y, int64_t n) noexcept {
  for_each_sixteen(n, [=](int64_t i, auto lanes) { lanes.store(y + i, silu16(lanes.load(x + i))); });
}

void silu_mul(const float* gate, const float* up, float* y, int64_t n) noexcept {
  for_each_sixteen(n, [=](int64_t i, auto lanes) { lanes.store(y + i, _mm512_mul_ps(silu16(lanes.load(gate + i)), lanes.load(up + i))); });
}

void rope_split(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept {
  const int64_t half = rope_dim / 2;
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim) {
    for_each_sixteen(half, [=](int64_t i, auto lanes) {
      const __m512 a = lanes.load(x + i);
      const __m512 b = lanes.load(x + i + half);
      const __m512 c = lanes.load(cos + i);
      const __m512 s = lanes.load(sin + i);
      lanes.store(x + i, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
      lanes.store(x + i + half, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    });
  }
}

void rope_interleaved(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept {
  const int64_t half = rope_dim / 2;
  const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  const __m512i even = _mm512_setr_epi32(0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14);
  const __m512i odd = _mm512_setr_epi32(1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 15, 15);
  constexpr __mmask16 kOddLanes = 0xaaaa;
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim) {
    for (int64_t i = 0; i < half; i += 8) {  // 8 pairs
      const int64_t pairs = half - i < 8 ? half - i : 8;
      const Lanes angles{first_lanes(pairs)}, elements{first_lanes(2 * pairs)};
      const __m512 c = _mm512_permutexvar_ps(twice, angles.load(cos + i));
      const __m512 s = _mm512_permutexvar_ps(twice, angles.load(sin + i));
      const __m512 pair = elements.load(x + 2 * i);
      const __m512 a = _mm512_permutexvar_ps(even, pair);
      const __m512 b = _mm512_permutexvar_ps(odd, pair);
      const __m512 turned_a = _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s));
      const __m512 turned_b = _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c));
      elements.store(x + 2 * i, _mm512_mask_mov_ps(turned_a, kOddLanes, turned_b));
    }
  }
}

}  // namespace

constexpr OpKernels kOps = {.isa = "avx512",
                            .rms_norm = rms_norm,
                            .add = add,
                            .mul = mul,
                            .scale = scale,
                            .exp = exp,
                            .silu = silu,
                            .silu_mul = silu_mul,
                            .rope_split = rope_split,
                            .rope_interleaved = rope_interleaved,
                            .attend = attend};

}  // namespace minfer::cpu::avx512
