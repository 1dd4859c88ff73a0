// Packed weight matrices: the one layout that every kernel of the cpu backend reads, whatever the instruction set.
// Packing only moves bits: the weights, scales and mins of the GGUF blocks are all kept exactly.
//
// Rows are packed in groups of 16. Inside a group the quantised values of 32 columns fill "planes": lines of 64 bytes,
// where row r owns bytes 4r..4r+3, so that one vector lane is one row and no horizontal sum is ever needed. The exact
// positions are in packed_format.hpp. Block formats: ggml's block_q* structures.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minfer::cpu {

// The numbers are those of GGUF tensor types.
enum class WeightType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

inline constexpr size_t kGroupRows = 16;

bool weight_type_known(uint32_t gguf_type);
// F32, F16 and BF16: multiplied with float activations. All others take 8-bit activations (matmul.hpp).
bool weight_type_is_float(WeightType type);
// cols must be a multiple of this: 1, 32 or 256.
size_t weight_block_cols(WeightType type);
// Bytes of one row in a GGUF file. cols > 0 and a multiple of weight_block_cols.
size_t gguf_row_bytes(WeightType type, size_t cols);

inline size_t group_count(size_t rows) { return rows / kGroupRows + (rows % kGroupRows != 0); }
// Always a multiple of 64. The packed matrix is group_count(rows) of these and starts at a 64-byte boundary.
size_t packed_group_bytes(WeightType type, size_t cols);

// Packs groups [group_begin, group_end) of a row-major GGUF matrix `src` into `packed`, the base of the whole packed
// matrix. Rows beyond `rows` in the last group are filled with zero bytes. Threads may pack disjoint ranges of groups at once.
void pack_groups(WeightType type, const void* src, size_t rows, size_t cols, size_t group_begin, size_t group_end, void* packed);

// One row as f32, in the reference's order of operations: scale product first, then times the integer, then the min.
void dequantize_row(WeightType type, const void* packed, size_t cols, size_t row, float* out);
// The same from a row as it lies in the GGUF file.
void dequantize_row_gguf(WeightType type, const void* src_row, size_t cols, float* out);

}  // namespace minfer::cpu
