// F32, F16 and BF16 weights: one fused multiply-add per weight, columns ascending. Included by the files of avx512/ only.
#pragma once

#include "kernels/avx512/block_avx512.hpp"

namespace minfer::cpu {
namespace {

template <WeightType type>
constexpr size_t float_bytes() {
  return type == WeightType::kF32 ? 4 : 2;
}

// Weights of column k for the 16 rows.
template <WeightType type>
inline __m512 load_weights(const uint8_t* group, size_t k) {
  const uint8_t* p = group + k * 16 * float_bytes<type>();
  if constexpr (type == WeightType::kF32) return _mm512_loadu_ps(reinterpret_cast<const float*>(p));
  if constexpr (type == WeightType::kF16) return load_half16(p);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load256(p)), 16));
}

template <WeightType type>
inline void prefetch_column(const uint8_t* group, size_t k) {
  _mm_prefetch(reinterpret_cast<const char*>(group + k * 16 * float_bytes<type>() + prefetch_bytes(type)), _MM_HINT_T0);
}

// n_groups groups side by side: the chain of one group alone waits for its own results.
template <WeightType type, size_t n_groups>
inline void gemv_float_groups(const MatmulArgs& args, size_t g, size_t group_bytes) {
  const uint8_t* weights = static_cast<const uint8_t*>(args.weights) + g * group_bytes;
  __m512 acc[n_groups];
#pragma GCC unroll 8
  for (size_t i = 0; i < n_groups; ++i) acc[i] = _mm512_setzero_ps();
  for (size_t k = 0; k < args.cols; ++k) {
    const __m512 x = _mm512_set1_ps(args.x[k]);
#pragma GCC unroll 8
    for (size_t i = 0; i < n_groups; ++i) {
      const uint8_t* group = weights + i * group_bytes;
      if (k % (kLineBytes / (16 * float_bytes<type>())) == 0) prefetch_column<type>(group, k);
      acc[i] = _mm512_fmadd_ps(load_weights<type>(group, k), x, acc[i]);
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < n_groups; ++i) finish_rows(args, (g + i) * 16, 0, acc[i]);
}

template <WeightType type>
void gemv_float(const MatmulArgs& args) {
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  size_t g = args.group_begin;
  for (; g + 8 <= args.group_end; g += 8) gemv_float_groups<type, 8>(args, g, group_bytes);
  for (; g < args.group_end; ++g) gemv_float_groups<type, 1>(args, g, group_bytes);
}

constexpr size_t kFloatTokenBlock = 132;
constexpr size_t kFloatPanelCols = 256;
struct alignas(64) FloatScratch {
  float panel[kFloatPanelCols][16];
  float acc[kFloatTokenBlock][16];
};
static_assert(sizeof(FloatScratch) <= kMatmulScratchBytes);

template <size_t n>
inline void micro_kernel_float(const float (*panel)[16], size_t n_cols, const float* x, size_t x_stride, float (*acc)[16]) {
  __m512 sum[n];
  for (size_t c = 0; c < n; ++c) sum[c] = _mm512_loadu_ps(acc[c]);
  for (size_t k = 0; k < n_cols; ++k) {
    const __m512 w = _mm512_loadu_ps(panel[k]);
    for (size_t c = 0; c < n; ++c) sum[c] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[c * x_stride + k]), sum[c]);
  }
  for (size_t c = 0; c < n; ++c) _mm512_storeu_ps(acc[c], sum[c]);
}

template <WeightType type>
void gemm_float(const MatmulArgs& args) {
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  FloatScratch& scratch = *static_cast<FloatScratch*>(args.scratch);
  for (size_t token = 0; token < args.n_tokens; token += kFloatTokenBlock) {
    const size_t n_tokens = args.n_tokens - token < kFloatTokenBlock ? args.n_tokens - token : kFloatTokenBlock;
    for (size_t g = args.group_begin; g < args.group_end; ++g) {
      const uint8_t* group = static_cast<const uint8_t*>(args.weights) + g * group_bytes;
      std::memset(scratch.acc, 0, n_tokens * sizeof scratch.acc[0]);
      for (size_t first = 0; first < args.cols; first += kFloatPanelCols) {
        const size_t n_cols = args.cols - first < kFloatPanelCols ? args.cols - first : kFloatPanelCols;
        for (size_t k = 0; k < n_cols; ++k) {
          prefetch_column<type>(group, first + k);
          _mm512_storeu_ps(scratch.panel[k], load_weights<type>(group, first + k));
        }
        const float* x = args.x + token * args.x_stride + first;
        size_t c = 0;
        for (; c + 12 <= n_tokens; c += 12)
          micro_kernel_float<12>(scratch.panel, n_cols, x + c * args.x_stride, args.x_stride, &scratch.acc[c]);
        for (; c + 4 <= n_tokens; c += 4)
          micro_kernel_float<4>(scratch.panel, n_cols, x + c * args.x_stride, args.x_stride, &scratch.acc[c]);
        for (; c < n_tokens; ++c) micro_kernel_float<1>(scratch.panel, n_cols, x + c * args.x_stride, args.x_stride, &scratch.acc[c]);
      }
      for (size_t c = 0; c < n_tokens; ++c) {
        const __m512 sum = _mm512_loadu_ps(scratch.acc[c]);
        finish_rows(args, g * 16, token + c, sum);
      }
    }
  }
}

}  // namespace
}  // namespace minfer::cpu
