// Rows of a KV region between its layout on the device (kernels/kv.cl) and the canonical form of minfer/abi/backend.h. No OpenCL here:
// whole blocks are read and written by the caller.
#pragma once

#include <cstddef>

#include "minfer/abi/backend.h"

namespace minfer::opencl {

// Bytes of one position's row of all heads; 64 of them are a block.
uint64_t kv_row_bytes(const mi_kv_layout& layout);

// Row `position` (0..63) of a block of K or V, out of and into the block.
void read_kv_row(const mi_kv_layout& layout, bool is_k, const std::byte* block, uint32_t position, std::byte* row);
void write_kv_row(const mi_kv_layout& layout, bool is_k, std::byte* block, uint32_t position, const std::byte* row);

}  // namespace minfer::opencl
