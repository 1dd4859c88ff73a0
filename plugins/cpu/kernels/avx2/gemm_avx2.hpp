// Several tokens: a slab of a group's weights is unpacked once into a panel that stays in the first-level cache, then all
// tokens pass over it. Included by matmul_avx2.cpp only.
#pragma once

#include <type_traits>

#include "kernels/avx2/gemv_avx2.hpp"

namespace minfer::cpu {
namespace {

constexpr size_t kTokenBlock = 132;  // their activations of one slab and the sums of kGroupBlock groups stay in the second-level cache
constexpr size_t kGroupBlock = 8;
// Tokens of a micro-kernel. Their sums of 16 bits, two weights, an activation and a product fill the registers; the chains of four
// tokens are partly in memory, which costs less than the loads of weights it saves, except where a block has more to add up.
constexpr size_t token_step(WeightType type) { return quant_format(type).has_min || type == WeightType::kQ6_K ? 3 : 4; }

// One block of 16 rows, unpacked.
struct alignas(64) PanelValues {
  uint8_t q[8][64];  // stored values; Q8_0: the signed weights
  float d[16];
  int16_t scale[32];  // two per row: the sub-scales of K types, else ones
};
struct PanelMins : PanelValues {
  float m[16];
  union {
    int16_t min[32];      // Q2_K: two per row
    float min_value[16];  // Q4_K, Q5_K: one per row
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
  float macc[kGroupBlock][kTokenBlock][16];
};
static_assert(kTokenBlock % 3 == 0 && kTokenBlock % 4 == 0);

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
    _mm256_store_ps(out->d + 8 * half, load_half8(group + at.d + 16 * half));
    if constexpr (format.has_min) _mm256_store_ps(out->m + 8 * half, load_half8(group + at.m + 16 * half));
    const SubScales sub = load_sub_scales<type>(group + at.sub_scales, half);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out->scale + 16 * half), sub.scale);
    if constexpr (type == WeightType::kQ2_K)
      _mm256_store_si256(reinterpret_cast<__m256i*>(out->min + 16 * half), sub.min);
    else if constexpr (format.is_k() && format.has_min)
      _mm256_store_ps(out->min_value + 8 * half, _mm256_cvtepi32_ps(_mm256_srli_epi32(sub.min, 16)));
  }
}

// 16 rows x n tokens, the chains acc and macc [token][16] begin, or go on by n_blocks blocks. The activations of token c start at
// a + c * n_blocks. Not inlined: the loop needs every register.
template <WeightType type, size_t n>
[[gnu::noinline]] void micro_kernel(const PanelBlock<type>* panel, size_t n_blocks, const Q8Block* a, bool begin, float (*acc)[16],
                                    float (*macc)[16]) {
  constexpr QuantFormat format = quant_format(type);
  __m256 sum[n][2], min_sum[n][2];
#pragma GCC unroll 8
  for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 8
    for (int h = 0; h < 2; ++h) {
      sum[c][h] = begin ? _mm256_setzero_ps() : _mm256_load_ps(acc[c] + 8 * h);
      if constexpr (format.has_min) min_sum[c][h] = begin ? _mm256_setzero_ps() : _mm256_load_ps(macc[c] + 8 * h);
    }
  for (size_t b = 0; b < n_blocks; ++b, ++panel, ++a) {
    __m256i isum[n][2];
    for (size_t c = 0; c < n; ++c)  // the next tokens, still in the second-level cache
      _mm_prefetch(reinterpret_cast<const char*>(a + (c + n) * n_blocks), _MM_HINT_T0);
    const auto scale = [panel](int h) { return type == WeightType::kQ8_0 ? _mm256_set1_epi16(1) : load256(panel->scale + 16 * h); };
    if constexpr (type == WeightType::kQ8_0) {
#pragma GCC unroll 8
      for (size_t c = 0; c < n; ++c) isum[c][0] = isum[c][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j)
#pragma GCC unroll 8
        for (int h = 0; h < 2; ++h) {
          const __m256i w = load256(&panel->q[j][32 * h]), magnitude = load256(&panel->magnitude[j][32 * h]);
#pragma GCC unroll 8
          for (size_t c = 0; c < n; ++c) {
            const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(broadcast32(a[c * n_blocks].q + 4 * j), w));
            isum[c][h] = add32(isum[c][h], _mm256_madd_epi16(pairs, scale(h)));
          }
        }
    } else {
      constexpr int parts = type == WeightType::kQ6_K ? 2 : 1;  // 6-bit products leave room for 8 in a 16-bit sum
      __m256i s[parts][n][2], start[parts][n];
#pragma GCC unroll 8
      for (size_t c = 0; c < n; ++c) {
        const __m256i neg_sum = broadcast32(a[c * n_blocks].neg_sum16);
        start[0][c] = start_sum<type>(neg_sum);
        if constexpr (parts == 2) {
          start[0][c] = start_sum<type>(broadcast32(a[c * n_blocks].neg_sum8));
          start[1][c] = _mm256_sub_epi16(start_sum<type>(neg_sum), start[0][c]);
        }
      }
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const int part = parts == 2 ? j / 4 : 0;
        const __m256i w0 = load256(&panel->q[j][0]), w1 = load256(&panel->q[j][32]);
#pragma GCC unroll 8
        for (size_t c = 0; c < n; ++c) {
          const __m256i x = broadcast32(a[c * n_blocks].q + 4 * j);
          const bool first = j % (8 / parts) == 0;
          s[part][c][0] = add16(first ? start[part][c] : s[part][c][0], _mm256_maddubs_epi16(w0, x));
          s[part][c][1] = add16(first ? start[part][c] : s[part][c][1], _mm256_maddubs_epi16(w1, x));
        }
      }
#pragma GCC unroll 8
      for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 8
        for (int h = 0; h < 2; ++h) {
          isum[c][h] = block_sum<type>(s[0][c][h], start[0][c], scale(h));
          if constexpr (parts == 2) isum[c][h] = _mm256_add_epi32(isum[c][h], block_sum<type>(s[1][c][h], start[1][c], scale(h)));
        }
    }
#pragma GCC unroll 8
    for (size_t c = 0; c < n; ++c) {
      const Q8Block& block = a[c * n_blocks];
      const __m256 da = _mm256_set1_ps(block.d);
#pragma GCC unroll 8
      for (int h = 0; h < 2; ++h) {
        sum[c][h] = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(panel->d + 8 * h), da), _mm256_cvtepi32_ps(isum[c][h]), sum[c][h]);
        if constexpr (format.has_min) {
          const __m256 mw = _mm256_mul_ps(_mm256_load_ps(panel->m + 8 * h), da);
          if constexpr (format.is_k() && type != WeightType::kQ2_K) {
            // min * sum is below 2^24, so the product of the floats is the exact integer.
            const __m256 mins = _mm256_mul_ps(_mm256_load_ps(panel->min_value + 8 * h), _mm256_set1_ps(block.sum));
            min_sum[c][h] = _mm256_fmadd_ps(mw, mins, min_sum[c][h]);
          } else if constexpr (format.is_k()) {
            const __m256i mins = _mm256_madd_epi16(load256(panel->min + 16 * h), broadcast32(block.neg_sum16));
            min_sum[c][h] = _mm256_fnmadd_ps(mw, _mm256_cvtepi32_ps(mins), min_sum[c][h]);
          } else {
            min_sum[c][h] = _mm256_fmadd_ps(mw, _mm256_set1_ps(block.sum), min_sum[c][h]);
          }
        }
      }
    }
  }
#pragma GCC unroll 8
  for (size_t c = 0; c < n; ++c)
#pragma GCC unroll 8
    for (int h = 0; h < 2; ++h) {
      _mm256_store_ps(acc[c] + 8 * h, sum[c][h]);
      if constexpr (format.has_min) _mm256_store_ps(macc[c] + 8 * h, min_sum[c][h]);
    }
}

inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

template <WeightType type>
void gemm(const MatmulArgs& args) {
  constexpr size_t kStep = token_step(type);
  using Scratch = GemmScratch<type>;
  static_assert(sizeof(Scratch) <= kMatmulScratchBytes);
  Scratch& scratch = *static_cast<Scratch*>(args.scratch);
  const size_t n_blocks = args.cols / kBlockCols;
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  // With few tokens the weights are the larger stream: a group is then read from one end to the other.
  const size_t groups_at_once = args.n_tokens <= 32 ? 1 : kGroupBlock;
  const size_t n_parts = (args.n_tokens + kTokenBlock - 1) / kTokenBlock;
  const size_t part_tokens = (args.n_tokens + n_parts * kStep - 1) / (n_parts * kStep) * kStep;  // even shares, whole steps
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
          float(*macc)[16] = scratch.macc[i];
          for (size_t c = 0, n; c < n_tokens; c += n) {
            const size_t left = n_tokens - c;
            n = left >= kStep ? kStep : left >= 2 ? 2 : 1;
            const auto kernel = n == kStep ? micro_kernel<type, kStep> : n == 2 ? micro_kernel<type, 2> : micro_kernel<type, 1>;
            kernel(scratch.panel, width, a + c * width, slab == 0, acc + c, macc + c);
            if (slab + width < n_blocks) continue;
            for (size_t t = c; t < c + n; ++t) {
              const __m256 sum[2] = {_mm256_load_ps(acc[t]), _mm256_load_ps(acc[t] + 8)};
              const __m256 min_sum[2] = {_mm256_load_ps(macc[t]), _mm256_load_ps(macc[t] + 8)};
              finish_rows<type>(args, (first + i) * 16, token + t, sum, min_sum);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace minfer::cpu
