// How the rows of one layer's K and V lie in memory: the one description that stores, exports and attention share.
// Knows nothing of graphs, sequences or threads; a "cell" is block * 64 + row within the block, chosen by the caller.
//
// A region holds n_blocks blocks of 64 positions; a block holds its kv heads one after the other. Inside a (block, head):
//   K: 4 panels of 16 positions, position = lane, so that 16 scores come out of one pass without a horizontal sum.
//      f32, f16: [panel][head_dim][16].   q8_0: [panel][head_dim / 32]{ f16 d[16], int8 q[32][16] }.
//   V: [position][head_dim].              q8_0: [position][head_dim / 32]{ f16 d, int8 q[32] }.
// A q8_0 element is f32(d) * q, rounded once. All numbers are little endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minfer::cpu {

constexpr int32_t kKvBlock = 64;  // positions in a block
constexpr int32_t kKvPanel = 16;  // positions in a K panel
constexpr int32_t kQ8Group = 32;  // elements that share a q8_0 scale
constexpr int32_t kQ8Bytes = 34;  // bytes of such a group: f16 d, int8 q[32]

enum class KvFormat : uint32_t { kF32, kF16, kQ8_0 };

struct KvLayout {
  KvFormat format = KvFormat::kF16;
  int32_t n_kv_heads = 0;
  int32_t head_dim = 0;
};

// True if kernels can work on it: head_dim a multiple of 16 (32 for q8_0), at most 1024; 1 to 65536 heads.
bool kv_layout_supported(const KvLayout& layout) noexcept;

// Bytes of the head_dim elements of one head of one position, of a (block, head), and of a whole row (all heads).
// static, not inline: files of different instruction sets include this header and each needs its own copy.
[[maybe_unused]] static int64_t kv_head_row_bytes(const KvLayout& layout) noexcept {
  switch (layout.format) {
    case KvFormat::kF32: return int64_t{4} * layout.head_dim;
    case KvFormat::kF16: return int64_t{2} * layout.head_dim;
    case KvFormat::kQ8_0: return int64_t{layout.head_dim / kQ8Group} * kQ8Bytes;
  }
  return 0;
}
[[maybe_unused]] static int64_t kv_head_block_bytes(const KvLayout& layout) noexcept { return kKvBlock * kv_head_row_bytes(layout); }
[[maybe_unused]] static int64_t kv_row_bytes(const KvLayout& layout) noexcept { return layout.n_kv_heads * kv_head_row_bytes(layout); }
// Where (block, head) begins in a region of K or of V.
[[maybe_unused]] static int64_t kv_offset(const KvLayout& layout, int64_t block, int64_t kv_head) noexcept {
  return (block * layout.n_kv_heads + kv_head) * kv_head_block_bytes(layout);
}

// Bytes of a K region; a V region has the same size. Any alignment works, 64 is fastest.
uint64_t kv_region_bytes(const KvLayout& layout, uint64_t n_blocks) noexcept;

enum class KvStore : int32_t {
  kOk,
  kNonFinite,     // a K or V value is infinite or NaN
  kBeyondFormat,  // a K or V magnitude that the format cannot hold (f16: above 65504)
};

// Stores one position: k and v are [n_kv_heads][head_dim], contiguous. Both are judged before anything is written.
KvStore kv_store_row(const KvLayout& layout, void* k_region, void* v_region, int64_t cell, const float* k, const float* v) noexcept;

// Canonical rows: [n_kv_heads][head_dim] in the layout's format (q8_0: groups of { f16 d, int8 q[32] }), kv_row_bytes() each.
// What session files hold and what moves between backends; reading and writing back restores the same bits.
void kv_read_row(const KvLayout& layout, const void* k_region, const void* v_region, int64_t cell, void* k_row, void* v_row) noexcept;
void kv_write_row(const KvLayout& layout, void* k_region, void* v_region, int64_t cell, const void* k_row, const void* v_row) noexcept;
// The values of a canonical row, exactly as attention sees them: [n_kv_heads][head_dim].
void kv_row_to_f32(const KvLayout& layout, const void* row, float* out) noexcept;
// Copies n_rows positions from src_cell on to dst_cell on, ascending: ranges may overlap where dst_cell <= src_cell.
// Source rows src_cell.. and destination rows dst_cell.. are consecutive cells.
void kv_copy_rows(const KvLayout& layout, void* k_region, void* v_region, int64_t src_cell, int64_t dst_cell, int64_t n_rows) noexcept;

// Turns the keys of n_rows positions from `cell` on by one angle: each is read as attention sees it, every head rotated by
// `rotate` (OpKernels::rope_split or rope_interleaved; cos and sin: [head_dim / 2] of that angle), and stored as kv_store_row stores it.
// kOk, or what is wrong with the first row that cannot be stored, whose index is left in *bad_row. `write` false: judges only.
using KvRotate = void (*)(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept;
KvStore kv_rotate_rows(const KvLayout& layout, void* k_region, int64_t cell, int64_t n_rows, KvRotate rotate, const float* cos,
                       const float* sin, bool write, int64_t* bad_row) noexcept;

}  // namespace minfer::cpu
