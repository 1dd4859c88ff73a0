// Attention over K and V as stored in regions (kv_layout.hpp): arguments, units of work and the exact arithmetic.
// Knows nothing of graphs or threads: a caller hands out units (kv head, query heads, rows), results never depend on how.
//
// For one row at position `pos` that sees positions first..pos, one query head q and its kv head:
//   s[p] = (fma over d ascending of q[d] * K[p][d], from +0) * scale
//   chunks of 256 positions counted from position 0; over the visible positions of chunk c:
//     m_c = max s;  e[p] = exp_f32(s[p] - m_c)
//     l_c = sum of e in 16 lanes (lane = p mod 16, p ascending, from +0), added as lanes i and i + 8, then + 4, + 2, + 1
//     o_c[d] = fma over p ascending of e[p] * V[p][d], from +0
//   M = max m_c;  w_c = exp_f32(m_c - M);  L = fma over c ascending of l_c * w_c, from +0;  O[d] = the same over o_c[d] * w_c
//   out[d] = O[d] / L
// Cells outside first..pos may hold anything, NaN too: they never reach a result. q is finite.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_layout.hpp"

namespace minfer::cpu {

constexpr int32_t kAttentionChunk = 256;

// One row of the batch.
struct AttentionRow {
  const int32_t* blocks;  // blocks[p / 64] is the region's block of position p, for every p in first..position; null: padding row,
                          // which is skipped (its output is left as it is)
  int32_t position;
  int32_t first;  // 0 <= first <= position
};

struct AttentionArgs {
  KvLayout layout;
  int32_t n_heads;  // query heads, a multiple of n_kv_heads; query head h reads kv head h / (n_heads / n_kv_heads)
  float scale;
  const void* k_region;
  const void* v_region;
  const float* q;  // row r, head h at q + r * q_stride + h * head_dim
  int64_t q_stride;
  float* out;  // the same form
  int64_t out_stride;
  const AttentionRow* rows;
};

// A unit of work: rows row_begin..row_end-1 for query heads head_begin..head_end-1, all of one kv head.
// Units of disjoint outputs may run at the same time on the same arguments, each with its own scratch.
struct AttentionUnit {
  int32_t head_begin;
  int32_t head_end;
  int32_t row_begin;
  int32_t row_end;
};

// Scratch of one unit of n_rows rows and n_heads query heads that sees positions up to max_position; 64-byte aligned.
// 4 * (head_dim + 2) bytes per row, head and chunk of 256 positions, and 190 KiB at head_dim 64. Tiles of 16 to 64 rows do well.
size_t attention_scratch_bytes(int32_t head_dim, int32_t n_rows, int32_t n_heads, int32_t max_position) noexcept;

}  // namespace minfer::cpu
