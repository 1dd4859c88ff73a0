// Element-wise and row operations for AVX2 + FMA: the bits of kernels/baseline/ops_baseline.cpp.
#include <immintrin.h>

#include "kernels/avx2/vec_math.hpp"
#include "kernels/op_tables.hpp"

namespace minfer::cpu::avx2 {
namespace {

// Calls body(offset, load, store) for eight elements at a time; the last ones through masks. Masked-off lanes are loaded as 0.
struct Full {
  static __m256 load(const float* p) noexcept { return _mm256_loadu_ps(p); }
  static void store(float* p, __m256 v) noexcept { _mm256_storeu_ps(p, v); }
};
struct Masked {
  __m256i mask;
  __m256 load(const float* p) const noexcept { return _mm256_maskload_ps(p, mask); }
  void store(float* p, __m256 v) const noexcept { _mm256_maskstore_ps(p, mask, v); }
};
template <class Body>
inline void for_each_eight(int64_t n, Body body) noexcept {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) body(i, Full{});
  if (i < n) body(i, Masked{first_lanes(n - i)});
}

void rms_norm(const float* x, const float* weight, float* y, int64_t n_rows, int64_t n, float eps) noexcept {
  for (int64_t row = 0; row < n_rows; ++row, x += n, y += n) {
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
      const __m256 a = _mm256_loadu_ps(x + i);
      const __m256 b = _mm256_loadu_ps(x + i + 8);
      low = _mm256_fmadd_ps(a, a, low);
      high = _mm256_fmadd_ps(b, b, high);
    }
    if (i < n) {  // a lane that gets no element adds 0 to its sum, which cannot change it
      const int64_t left = n - i;
      const __m256 a = _mm256_maskload_ps(x + i, first_lanes(left < 8 ? left : 8));
      low = _mm256_fmadd_ps(a, a, low);
      if (left > 8) {
        const __m256 b = _mm256_maskload_ps(x + i + 8, first_lanes(left - 8));
        high = _mm256_fmadd_ps(b, b, high);
      }
    }
    const float mean = sum_lanes(low, high) / static_cast<float>(n);
    const float factor = 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
    const __m256 factors = _mm256_set1_ps(factor);
    for_each_eight(n, [=](int64_t k, auto lanes) {
      lanes.store(y + k, _mm256_mul_ps(_mm256_mul_ps(lanes.load(x + k), factors), lanes.load(weight + k)));
    });
  }
}

void add(const float* a, const float* b, float* y, int64_t n) noexcept {
  for_each_eight(n, [=](int64_t i, auto lanes) { lanes.store(y + i, _mm256_add_ps(lanes.load(a + i), lanes.load(b + i))); });
}

void mul(const float* a, const float* b, float* y, int64_t n) noexcept {
  for_each_eight(n, [=](int64_t i, auto lanes) { lanes.store(y + i, _mm256_mul_ps(lanes.load(a + i), lanes.load(b + i))); });
}

void scale(const float* x, float factor, float* y, int64_t n) noexcept {
  const __m256 factors = _mm256_set1_ps(factor);
  for_each_eight(n, [=](int64_t i, auto lanes) { lanes.store(y + i, _mm256_mul_ps(lanes.load(x + i), factors)); });
}

void exp(const float* x, float* y, int64_t n) noexcept {
  for_each_eight(n, [=](int64_t i, auto lanes) { lanes.store(y + i, exp8(lanes.load(x + i))); });
}

inline __m256 silu8(__m256 x) noexcept {
  const __m256 negative = _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), exp8(negative)));
}

void silu(const float* x, float* y, int64_t n) noexcept {
  for_each_eight(n, [=](int64_t i, auto lanes) { lanes.store(y + i, silu8(lanes.load(x + i))); });
}

void silu_mul(const float* gate, const float* up, float* y, int64_t n) noexcept {
  for_each_eight(n, [=](int64_t i, auto lanes) { lanes.store(y + i, _mm256_mul_ps(silu8(lanes.load(gate + i)), lanes.load(up + i))); });
}

void rope_split(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept {
  const int64_t half = rope_dim / 2;
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim) {
    for_each_eight(half, [=](int64_t i, auto lanes) {
      const __m256 a = lanes.load(x + i);
      const __m256 b = lanes.load(x + i + half);
      const __m256 c = lanes.load(cos + i);
      const __m256 s = lanes.load(sin + i);
      lanes.store(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
      lanes.store(x + i + half, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    });
  }
}

void rope_interleaved(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept {
  const int64_t half = rope_dim / 2;
  const auto rotate = [](__m256 pairs, __m128 c, __m128 s) {
    const __m256 cs = _mm256_set_m128(_mm_unpackhi_ps(c, s), _mm_unpacklo_ps(c, s));  // c0 s0 c1 s1 ...
    const __m256 sc = _mm256_permute_ps(cs, 0xB1);                                    // s0 c0 s1 c1 ...
    const __m256 a = _mm256_moveldup_ps(pairs), b = _mm256_movehdup_ps(pairs);
    return _mm256_fmaddsub_ps(a, cs, _mm256_mul_ps(b, sc));  // a c - b s, a s + b c
  };
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim) {
    int64_t i = 0;
    for (; i + 4 <= half; i += 4)
      _mm256_storeu_ps(x + 2 * i, rotate(_mm256_loadu_ps(x + 2 * i), _mm_loadu_ps(cos + i), _mm_loadu_ps(sin + i)));
    if (i == half) continue;
    // Masked stores are slow on many CPUs: the last pairs alone.
    const __m128i quarter = _mm256_castsi256_si128(first_lanes(half - i));
    const __m256i mask = first_lanes(2 * (half - i));
    _mm256_maskstore_ps(x + 2 * i, mask,
                        rotate(_mm256_maskload_ps(x + 2 * i, mask), _mm_maskload_ps(cos + i, quarter), _mm_maskload_ps(sin + i, quarter)));
  }
}

}  // namespace

constexpr OpKernels kOps = {.isa = "avx2",
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

}  // namespace minfer::cpu::avx2
