// Matrix products of the cpu backend: out = packed weights x activations + bias.
//
// The result of every output element is defined to the bit (baseline/matmul_baseline.cpp is the definition); it depends
// neither on the instruction set nor on how many tokens or threads share the work.
// Threads: no function here keeps state. A caller splits a product by groups of 16 rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu_features.hpp"
#include "kernels/weight_layout.hpp"

namespace minfer::cpu {

// 32 activations as 8-bit integers: x ~ d * q.
struct Q8Block {
  float d;
  float scaled_sum;  // d * (sum of q), rounded once
  // Sums of q as the 16-bit sums of the x86 kernels begin (x86_blocks.hpp), those for weights of 5 and of 6 bits with an offset. Other
  // offsets and the mins of Q2_K take start5 shifted down.
  int16_t start5[2];     // -16 * (sum of q) over columns 0..15 and 16..31
  int16_t start6[2][2];  // -32 * (sum of q) over columns 0..7 and 16..23, then over columns 8..15 and 24..31
  int8_t q[32];          // in the storage order of the weights (packed_format.hpp)
};
static_assert(sizeof(Q8Block) == 52);

// The activations of n_tokens rows are stored in slabs of 16 blocks (512 columns), so that a slab of many tokens stays in
// cache while the weights pass; within a slab each token's blocks are contiguous. One token: just block after block.
inline constexpr size_t kSlabBlocks = 16;
inline size_t q8_index(size_t n_blocks, size_t n_tokens, size_t token, size_t block) {
  const size_t first = block / kSlabBlocks * kSlabBlocks;
  const size_t width = n_blocks - first < kSlabBlocks ? n_blocks - first : kSlabBlocks;
  return first * n_tokens + token * width + (block - first);
}

struct QuantizeArgs {
  const float* x;  // x[token * x_stride + column]
  size_t x_stride;
  size_t cols;  // multiple of 32
  size_t n_tokens;
  size_t token_begin, token_end;  // the part to do: callers may share the work
  size_t block_begin, block_end;  // in blocks of 32 columns
  Q8Block* out;                   // n_tokens * cols / 32 blocks
};

struct MatmulArgs {
  const void* weights;            // packed, 64-byte aligned, all of the matrix
  size_t rows, cols;              // cols: a multiple of weight_block_cols(type)
  size_t group_begin, group_end;  // the part to do, in groups of 16 rows
  size_t n_tokens;
  const Q8Block* q8;  // activations for quantised types
  const float* x;     // activations for F32, F16 and BF16: x[token * x_stride + column]
  size_t x_stride;
  const float* bias;  // [rows], or null
  float* out;         // out[token * out_stride + row]
  size_t out_stride;
  void* scratch;  // kMatmulScratchBytes for this thread alone, 64-byte aligned
};
inline constexpr size_t kMatmulScratchBytes = 128 * 1024;

struct MatmulKernels {
  Isa isa;
  // pack_groups (weight_layout.hpp), to the same bytes.
  void (*pack)(WeightType type, const void* src, size_t rows, size_t cols, size_t group_begin, size_t group_end, void* packed);
  // False if a value is not finite; the blocks of that row are then undefined.
  bool (*quantize)(const QuantizeArgs& args);
  void (*matmul[32])(const MatmulArgs& args);  // by WeightType; null where there is no such type
};

// The kernels for one instruction set, which must be supported (isa_supported).
const MatmulKernels& matmul_kernels(Isa isa);
inline void matmul(const MatmulKernels& kernels, WeightType type, const MatmulArgs& args) {
  kernels.matmul[static_cast<uint32_t>(type)](args);
}

}  // namespace minfer::cpu
