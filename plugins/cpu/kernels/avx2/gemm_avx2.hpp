// Several tokens: a slab of a group's weights is unpacked once into a panel that stays in the first-level cache, then all
// tokens pass over it. Included by matmul_avx2.cpp only.
#pragma once

#include <type_traits>

#include "kernels/avx2/gemv_avx2.hpp"

namespace minfer::cpu {
namespace {

constexpr size_t kTokenBlock = 132;  // their activations of one slab and the sums of kGroupBlock groups stay in the second-level cache
constexpr size_t kGroupBlock = 8;
// Tokens of a micro-kernel. Their sums of 16 bits, two weights, an activation and a product fill the registers; the float sums are
// partly in memory, which costs less than the loads of weights that a fourth token saves.
constexpr size_t kTokenStep = 4;

// One block of 16 rows, unpacked.
struct alignas(64) PanelValues {
  uint8_t q[8][64];   // stored values; Q8_0: the signed weights
  float d[16];        // K types: of 256 columns, in the first of their 8 blocks
  int16_t scale[32];  // two per row: the sub-scales of K types, else ones
};
struct PanelMins : PanelValues {
  float m[16];  // as d
  union {
    int16_t min_pairs[32];  // Q2_K: two per row
    float min[16];          // Q4_K, Q5_K: one per row
  };
};
struct PanelMagnitudes : PanelValues {  // Q8_0
  uint8_t magnitude[8][64];             // |w|
};
template <WeightType type>
using PanelBlock =
    std::conditional_t<type == WeightType::kQ8_0, PanelMagnitudes, std::conditional_t<quant_format(type).has_min, PanelMins, PanelValues>>;

template <WeightType type>
struct alignas(64) GemmScratch {
  PanelBlock<type> panel[kSlabBlocks];
  float acc[kGroupBlock][kTokenBlock][16];
};
static_assert(kTokenBlock % kTokenStep == 0);

template <WeightType type>
inline void expand(const uint8_t* group, size_t block, PanelBlock<type>* out) {
  constexpr QuantFormat format = quant_format(type);
  const PackedBlock at = packed_block(format, block);
  prefetch_block<type>(group + at.planes);
  for (size_t half = 0; half < 2; ++half) {
    __m256i v[8];
    unpack_half<format.bits>(group + at.planes + 32 * half, v);
    for (int j = 0; j < 8; ++j) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(&out->q[j][32 * half]), v[j]);
      if constexpr (type == WeightType::kQ8_0)
        _mm256_store_si256(reinterpret_cast<__m256i*>(&out->magnitude[j][32 * half]), _mm256_abs_epi8(v[j]));
    }
    if (!format.is_k() || block % 8 == 0) {
      _mm256_store_ps(out->d + 8 * half, load_half8(group + at.d + 16 * half));
      if constexpr (format.has_min) _mm256_store_ps(out->m + 8 * half, load_half8(group + at.m + 16 * half));
    }
    const uint8_t* sub = group + at.sub_scales;
    _mm256_store_si256(reinterpret_cast<__m256i*>(out->scale + 16 * half), load_sub_scales<type>(sub, half));
    if constexpr (type == WeightType::kQ2_K)
      _mm256_store_si256(reinterpret_cast<__m256i*>(out->min_pairs + 16 * half), load_min_pairs(sub, half));
    else if constexpr (format.is_k() && format.has_min)
      _mm256_store_ps(out->min + 8 * half, load_mins(sub, half));
  }
}

// isum[c][half]: the integer part of a block for n tokens. The activations of token c are a[c * stride].
template <WeightType type, size_t n>
[[gnu::always_inline]] inline void integer_part(const PanelBlock<type>& w, const Q8Block* a, size_t stride, __m256i (*isum)[2]) {
  const auto scale = [&w](int h) { return type == WeightType::kQ8_0 ? _mm256_set1_epi16(1) : load256(w.scale + 16 * h); };
  if constexpr (type == WeightType::kQ8_0) {
#pragma GCC unroll 8
    for (size_t c = 0; c < n; ++c) isum[c][0] = isum[c][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const __m256i w0 = load256(&w.q[j][0]), w1 = load256(&w.q[j][32]);
      const __m256i magnitude0 = load256(&w.magnitude[j][0]), magnitude1 = load256(&w.magnitude[j][32]);
#pragma GCC unroll 8
      for (size_t c = 0; c < n; ++c) {
        const __m256i x = broadcast32(a[c * stride].q + 4 * j);
        const __m256i pairs0 = _mm256_maddubs_epi16(magnitude0, _mm256_sign_epi8(x, w0));
        const __m256i pairs1 = _mm256_maddubs_epi16(magnitude1, _mm256_sign_epi8(x, w1));
        isum[c][0] = add32(isum[c][0], _mm256_madd_epi16(pairs0, scale(0)));
        isum[c][1] = add32(isum[c][1], _mm256_madd_epi16(pairs1, scale(1)));
      }
    }
  } else {
    constexpr int parts = sum_parts(type), vectors = 8 / parts;
#pragma GCC unroll 2
    for (int part = 0; part < parts; ++part) {
      __m256i s[n][2];
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) {
        const int v = vectors * part + j;
        const __m256i w0 = load256(&w.q[v][0]), w1 = load256(&w.q[v][32]);
#pragma GCC unroll 8
        for (size_t c = 0; c < n; ++c) {
          const Q8Block& block = a[c * stride];
          const __m256i x = broadcast32(block.q + 4 * v);
          const __m256i product[2] = {_mm256_maddubs_epi16(w0, x), _mm256_maddubs_epi16(w1, x)};
#pragma GCC unroll 2
          for (int h = 0; h < 2; ++h) {
            if (j > 0)
              s[c][h] = add16(s[c][h], product[h]);
            else
              s[c][h] = has_start(type) ? add16(start_sum<type>(block, part), product[h]) : product[h];
          }
        }
      }
#pragma GCC unroll 8
      for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
          const __m256i scaled = _mm256_madd_epi16(s[c][h], scale(h));
          isum[c][h] = part == 0 ? scaled : add32(isum[c][h], scaled);
        }
    }
  }
}

// The next tokens' blocks, still in the second-level cache.
template <size_t n>
inline void prefetch_next(const Q8Block* a, size_t stride) {
  for (size_t c = 0; c < n; ++c) _mm_prefetch(reinterpret_cast<const char*>(a + (c + n) * stride), _MM_HINT_T0);
}

// 16 rows x n tokens: the sums acc[token][16] begin, or go on by n_blocks blocks. The activations of token c start at a + c * n_blocks.
// Not inlined: the loop needs every register.
template <WeightType type, size_t n>
[[gnu::noinline]] void add_blocks(const PanelBlock<type>* panel, size_t n_blocks, const Q8Block* a, bool begin, float (*acc)[16]) {
  __m256 sum[n][2];
#pragma GCC unroll 8
  for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) sum[c][h] = begin ? _mm256_setzero_ps() : _mm256_load_ps(acc[c] + 8 * h);
  for (size_t b = 0; b < n_blocks; ++b, ++panel, ++a) {
    prefetch_next<n>(a, n_blocks);
    __m256i isum[n][2];
    integer_part<type, n>(*panel, a, n_blocks, isum);
#pragma GCC unroll 8
    for (size_t c = 0; c < n; ++c) {
      const __m256 da = _mm256_set1_ps(a[c * n_blocks].d), scaled_sum = _mm256_set1_ps(a[c * n_blocks].scaled_sum);
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const __m256 scale = _mm256_mul_ps(_mm256_load_ps(panel->d + 8 * h), da);
        sum[c][h] = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(isum[c][h]), sum[c][h]);
        if constexpr (quant_format(type).has_min) sum[c][h] = _mm256_fmadd_ps(_mm256_load_ps(panel->m + 8 * h), scaled_sum, sum[c][h]);
      }
    }
  }
#pragma GCC unroll 8
  for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) _mm256_store_ps(acc[c] + 8 * h, sum[c][h]);
}

// The mins of 8 blocks of a K type: a loop of their own, for which all registers are free.
template <WeightType type, size_t n>
[[gnu::always_inline]] inline void subtract_mins(const PanelBlock<type>* panel, const Q8Block* a, size_t stride, float (*acc)[16]) {
  __m256 sum[n][2];
#pragma GCC unroll 8
  for (size_t c = 0; c < n; ++c) sum[c][0] = sum[c][1] = _mm256_setzero_ps();
#pragma GCC unroll 1
  for (size_t b = 0; b < 8; ++b)
#pragma GCC unroll 8
    for (size_t c = 0; c < n; ++c) {
      const Q8Block& block = a[c * stride + b];
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        if constexpr (type == WeightType::kQ2_K) {
          const __m256i products = _mm256_madd_epi16(load256(panel[b].min_pairs + 16 * h), neg_sums(block));
          sum[c][h] = _mm256_fnmadd_ps(_mm256_set1_ps(block.d), _mm256_cvtepi32_ps(products), sum[c][h]);
        } else {
          sum[c][h] = _mm256_fmadd_ps(_mm256_load_ps(panel[b].min + 8 * h), _mm256_set1_ps(block.scaled_sum), sum[c][h]);
        }
      }
    }
#pragma GCC unroll 8
  for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m256 before = _mm256_load_ps(acc[c] + 8 * h);
      _mm256_store_ps(acc[c] + 8 * h, _mm256_fnmadd_ps(_mm256_load_ps(panel->m + 8 * h), sum[c][h], before));
    }
}

// As add_blocks, for K types: 8 blocks at a time.
template <WeightType type, size_t n>
[[gnu::noinline]] void add_super_blocks(const PanelBlock<type>* panel, size_t n_blocks, const Q8Block* a, bool begin, float (*acc)[16]) {
  for (size_t first = 0; first < n_blocks; first += 8, panel += 8, a += 8, begin = false) {
    __m256 sum[n][2];
#pragma GCC unroll 8
    for (size_t c = 0; c < n; ++c) sum[c][0] = sum[c][1] = _mm256_setzero_ps();
    for (size_t b = 0; b < 8; ++b) {
      prefetch_next<n>(a + b, n_blocks);
      __m256i isum[n][2];
      integer_part<type, n>(panel[b], a + b, n_blocks, isum);
#pragma GCC unroll 8
      for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h)
          sum[c][h] = _mm256_fmadd_ps(_mm256_set1_ps(a[c * n_blocks + b].d), _mm256_cvtepi32_ps(isum[c][h]), sum[c][h]);
    }
#pragma GCC unroll 8
    for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const __m256 before = begin ? _mm256_setzero_ps() : _mm256_load_ps(acc[c] + 8 * h);
        _mm256_store_ps(acc[c] + 8 * h, _mm256_fmadd_ps(_mm256_load_ps(panel->d + 8 * h), sum[c][h], before));
      }
    if constexpr (quant_format(type).has_min) subtract_mins<type, n>(panel, a, n_blocks, acc);
  }
}

template <WeightType type, size_t n>
void micro_kernel(const PanelBlock<type>* panel, size_t n_blocks, const Q8Block* a, bool begin, float (*acc)[16]) {
  if constexpr (quant_format(type).is_k())
    add_super_blocks<type, n>(panel, n_blocks, a, begin, acc);
  else
    add_blocks<type, n>(panel, n_blocks, a, begin, acc);
}

inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

template <WeightType type>
void gemm(const MatmulArgs& args) {
  using Scratch = GemmScratch<type>;
  static_assert(sizeof(Scratch) <= kMatmulScratchBytes);
  Scratch& scratch = *static_cast<Scratch*>(args.scratch);
  const size_t n_blocks = args.cols / kBlockCols;
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  // With few tokens the weights are the larger stream: a group is then read from one end to the other.
  const size_t groups_at_once = args.n_tokens <= 32 ? 1 : kGroupBlock;
  const size_t n_parts = (args.n_tokens + kTokenBlock - 1) / kTokenBlock;
  const size_t part_tokens = (args.n_tokens + n_parts * kTokenStep - 1) / (n_parts * kTokenStep) * kTokenStep;  // even shares, whole steps
  for (size_t token = 0; token < args.n_tokens; token += part_tokens) {
    const size_t n_tokens = smaller(args.n_tokens - token, part_tokens);
    for (size_t first = args.group_begin; first < args.group_end; first += groups_at_once) {
      const size_t n_groups = smaller(args.group_end - first, groups_at_once);
      for (size_t slab = 0; slab < n_blocks; slab += kSlabBlocks) {
        const size_t width = smaller(n_blocks - slab, kSlabBlocks);
        const Q8Block* a = args.q8 + slab * args.n_tokens + token * width;
        for (size_t i = 0; i < n_groups; ++i) {
          const uint8_t* group = static_cast<const uint8_t*>(args.weights) + (first + i) * group_bytes;
          for (size_t b = 0; b < width; ++b) expand<type>(group, slab + b, &scratch.panel[b]);
          float(*acc)[16] = scratch.acc[i];
          for (size_t c = 0, n; c < n_tokens; c += n) {
            const size_t left = n_tokens - c;
            n = left >= kTokenStep ? kTokenStep : left >= 2 ? 2 : 1;
            const auto kernel = n == kTokenStep ? micro_kernel<type, kTokenStep> : n == 2 ? micro_kernel<type, 2> : micro_kernel<type, 1>;
            kernel(scratch.panel, width, a + c * width, slab == 0, acc + c);
            if (slab + width < n_blocks) continue;
            for (size_t t = c; t < c + n; ++t)
              finish_rows(args, (first + i) * 16, token + t, _mm256_load_ps(acc[t]), _mm256_load_ps(acc[t] + 8));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace minfer::cpu
