// F32, F16 and BF16 weights: one fused multiply-add per weight, columns ascending. Included by matmul_avx2.cpp only.
#pragma once

#include <immintrin.h>

#include "kernels/avx2/gemm_avx2.hpp"

namespace minfer::cpu {
namespace {

template <WeightType type>
constexpr size_t float_bytes() {
  return type == WeightType::kF32 ? 4 : 2;
}

// Weights of column k for 8 of the 16 rows.
template <WeightType type>
inline __m256 load_weights(const uint8_t* group, size_t k, int half) {
  const uint8_t* p = group + (k * 16 + static_cast<size_t>(half) * 8) * float_bytes<type>();
  if constexpr (type == WeightType::kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  if constexpr (type == WeightType::kF16) return load_half8(p);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}

// Groups first, first + stride, ... side by side: `groups` of them. The chain of one group alone would wait for its own results.
template <WeightType type, size_t groups>
inline void gemv_float_groups(const MatmulArgs& args, size_t first, size_t stride) {
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  const uint8_t* weights = static_cast<const uint8_t*>(args.weights) + first * group_bytes;
  const size_t step = stride * group_bytes;
  __m256 acc[groups][2];
  for (size_t i = 0; i < groups; ++i) acc[i][0] = acc[i][1] = _mm256_setzero_ps();
  for (size_t k = 0; k < args.cols; ++k) {
    const __m256 x = _mm256_set1_ps(args.x[k]);
    for (size_t i = 0; i < groups; ++i) {
      const uint8_t* group = weights + i * step;
      if (groups == 1 && k % (64 / (16 * float_bytes<type>())) == 0)  // several streams are left to the hardware: faster with F16
        _mm_prefetch(reinterpret_cast<const char*>(group + k * 16 * float_bytes<type>() + prefetch_bytes(type)), _MM_HINT_T0);
      for (int h = 0; h < 2; ++h) acc[i][h] = _mm256_fmadd_ps(load_weights<type>(group, k, h), x, acc[i][h]);
    }
  }
  for (size_t i = 0; i < groups; ++i) finish_rows(args, (first + i * stride) * 16, 0, acc[i][0], acc[i][1]);
}

template <WeightType type>
void gemv_float(const MatmulArgs& args) {
  const size_t run = (args.group_end - args.group_begin) / kStreams;
  for (size_t g = 0; g < run; ++g) gemv_float_groups<type, kStreams>(args, args.group_begin + g, run);
  for (size_t g = args.group_begin + kStreams * run; g < args.group_end; ++g) gemv_float_groups<type, 1>(args, g, 0);
}

constexpr size_t kFloatPanelCols = 256;
struct alignas(64) FloatScratch {
  float panel[kFloatPanelCols][16];
  float acc[kTokenBlock][16];
};
static_assert(sizeof(FloatScratch) <= kMatmulScratchBytes);

template <int n>
inline void micro_kernel_float(const float (*panel)[16], size_t n_cols, const float* x, size_t x_stride, float (*acc)[16]) {
  __m256 sum[n][2];
  for (int c = 0; c < n; ++c)
    for (int h = 0; h < 2; ++h) sum[c][h] = _mm256_load_ps(acc[c] + 8 * h);
  for (size_t k = 0; k < n_cols; ++k) {
    const __m256 w0 = _mm256_load_ps(panel[k]), w1 = _mm256_load_ps(panel[k] + 8);
    for (int c = 0; c < n; ++c) {
      const __m256 value = _mm256_set1_ps(x[static_cast<size_t>(c) * x_stride + k]);
      sum[c][0] = _mm256_fmadd_ps(w0, value, sum[c][0]);
      sum[c][1] = _mm256_fmadd_ps(w1, value, sum[c][1]);
    }
  }
  for (int c = 0; c < n; ++c)
    for (int h = 0; h < 2; ++h) _mm256_store_ps(acc[c] + 8 * h, sum[c][h]);
}

template <WeightType type>
void gemm_float(const MatmulArgs& args) {
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  FloatScratch& scratch = *static_cast<FloatScratch*>(args.scratch);
  for (size_t token = 0; token < args.n_tokens; token += kTokenBlock) {
    const size_t n_tokens = args.n_tokens - token < kTokenBlock ? args.n_tokens - token : kTokenBlock;
    for (size_t g = args.group_begin; g < args.group_end; ++g) {
      const uint8_t* group = static_cast<const uint8_t*>(args.weights) + g * group_bytes;
      std::memset(scratch.acc, 0, n_tokens * sizeof scratch.acc[0]);
      for (size_t first = 0; first < args.cols; first += kFloatPanelCols) {
        const size_t n_cols = args.cols - first < kFloatPanelCols ? args.cols - first : kFloatPanelCols;
        for (size_t k = 0; k < n_cols; ++k) {
          _mm_prefetch(reinterpret_cast<const char*>(group + (first + k) * 16 * float_bytes<type>() + prefetch_bytes(type)), _MM_HINT_T0);
          for (int h = 0; h < 2; ++h) _mm256_store_ps(scratch.panel[k] + 8 * h, load_weights<type>(group, first + k, h));
        }
        const float* x = args.x + token * args.x_stride + first;
        size_t c = 0;
        for (; c + 6 <= n_tokens; c += 6)
          micro_kernel_float<6>(scratch.panel, n_cols, x + c * args.x_stride, args.x_stride, &scratch.acc[c]);
        for (; c + 2 <= n_tokens; c += 2)
          micro_kernel_float<2>(scratch.panel, n_cols, x + c * args.x_stride, args.x_stride, &scratch.acc[c]);
        for (; c < n_tokens; ++c) micro_kernel_float<1>(scratch.panel, n_cols, x + c * args.x_stride, args.x_stride, &scratch.acc[c]);
      }
      for (size_t c = 0; c < n_tokens; ++c)
        finish_rows(args, g * 16, token + c, _mm256_load_ps(scratch.acc[c]), _mm256_load_ps(scratch.acc[c] + 8));
    }
  }
}

}  // namespace
}  // namespace minfer::cpu
