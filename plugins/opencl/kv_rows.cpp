#include "kv_rows.hpp"

#include <cstring>

namespace minfer::opencl {
namespace {

// Calls move(offset in the canonical row, offset in the block, bytes) for every piece of a row.
template <class Move>
void for_each_piece(const mi_kv_layout& layout, bool is_k, uint64_t position, Move move) {
  const uint64_t head_dim = layout.head_dim, block = MI_KV_BLOCK_POSITIONS;
  const uint64_t head_row_bytes = kv_row_bytes(layout) / layout.n_head_kv;
  const bool q8 = layout.format == MI_TYPE_Q8_0;
  const uint64_t size = q8 ? 1 : layout.format == MI_TYPE_F16 ? 2 : 4;
  for (uint64_t head = 0; head < layout.n_head_kv; ++head) {
    const uint64_t in_row = head * head_row_bytes, in_block = head * head_row_bytes * block;
    for (uint64_t d = 0; d < head_dim; ++d) {
      const uint64_t at = in_block + (is_k ? d * block + position : position * head_dim + d) * size;
      move(in_row + (q8 ? d / 32 * 34 + 2 + d % 32 : d * size), at, size);
    }
    for (uint64_t g = 0; q8 && g < head_dim / 32; ++g)
      move(in_row + g * 34, in_block + block * head_dim + (is_k ? g * block + position : position * (head_dim / 32) + g) * 2, uint64_t{2});
  }
}

}  // namespace

uint64_t kv_row_bytes(const mi_kv_layout& layout) {
  const uint64_t n = uint64_t{layout.n_head_kv} * layout.head_dim;
  return layout.format == MI_TYPE_F32 ? n * 4 : layout.format == MI_TYPE_F16 ? n * 2 : n / 32 * 34;
}

void read_kv_row(const mi_kv_layout& layout, bool is_k, const std::byte* block, uint32_t position, std::byte* row) {
  for_each_piece(layout, is_k, position,
                 [&](uint64_t in_row, uint64_t in_block, uint64_t n) { std::memcpy(row + in_row, block + in_block, n); });
}

void write_kv_row(const mi_kv_layout& layout, bool is_k, std::byte* block, uint32_t position, const std::byte* row) {
  for_each_piece(layout, is_k, position,
                 [&](uint64_t in_row, uint64_t in_block, uint64_t n) { std::memcpy(block + in_block, row + in_row, n); });
}

}  // namespace minfer::opencl
