// The kernels of the cpu backend that are no matrix multiplications: one table of function pointers per instruction set.
// Every table gives the same bits; kernels/baseline is the definition. Kernels allocate nothing, keep no state, check no sizes
// (the planner has) and expect round-to-nearest with subnormals on. Alignment is free. Outputs may be an input itself, never overlap it
// otherwise.
#pragma once

#include <cstdint>

#include "cpu_features.hpp"
#include "kernels/attention.hpp"

namespace minfer::cpu {

struct OpKernels {
  const char* isa;  // "baseline", "avx2", "avx512"

  // y = x * (1 / sqrt(sum / n + eps)) * weight per row of n, left to right. sum: 16 lanes, lane i % 16, fma(x, x, lane) ascending
  // from +0, added as lanes i and i + 8, then + 4, + 2, + 1. x, y: [n_rows][n]; weight: [n].
  void (*rms_norm)(const float* x, const float* weight, float* y, int64_t n_rows, int64_t n, float eps) noexcept;

  void (*add)(const float* a, const float* b, float* y, int64_t n) noexcept;
  void (*mul)(const float* a, const float* b, float* y, int64_t n) noexcept;
  void (*scale)(const float* x, float factor, float* y, int64_t n) noexcept;
  void (*exp)(const float* x, float* y, int64_t n) noexcept;                           // exp_f32 of each
  void (*silu)(const float* x, float* y, int64_t n) noexcept;                          // x / (1 + exp(-x))
  void (*silu_mul)(const float* gate, const float* up, float* y, int64_t n) noexcept;  // silu(gate) * up

  // Rotates the heads of one row in place: x is [n_heads][head_dim], of which the first rope_dim (even) turn; cos and sin are
  // the row of its position in the table, [rope_dim / 2]. With (a, b) a pair: a' = fma(a, cos, -(b * sin)), b' = fma(a, sin, b * cos).
  void (*rope_split)(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept;
  void (*rope_interleaved)(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept;
  // Pairs: split (i, i + rope_dim / 2), "neox"; interleaved (2i, 2i + 1), "norm".

  // Whole rows; a null row is skipped. Contract in attention.hpp.
  void (*attend)(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept;
};

// The fastest table that runs where `isa` does. `isa` must be supported by this machine.
const OpKernels& op_kernels(Isa isa) noexcept;

}  // namespace minfer::cpu
