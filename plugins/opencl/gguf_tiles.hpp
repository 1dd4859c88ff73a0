// The layout of weight matrices on the device, and its making from the rows of a GGUF file. No OpenCL here.
//
// 32 rows lie side by side, so that 32 work-items that own a row each read neighbouring words; rows beyond the last are zero.
//   Float types: per column 32 values, as in the file.
//   Quantised types: a tile per 32 columns of the 32 rows, in planes that are multiples of 64 bytes:
//     int32 [8][32]   word j of row r: columns 4j..4j+3 as signed bytes, the type's offset taken off
//     f16 d[32]       scale
//     f16 m[32]       min (Q4_1, Q5_1) or dmin (Q2_K, Q4_K, Q5_K), where the type has one
//     int8 [2][32]    sub-scales of columns 0..15 and 16..31, K types
//     uint8 [2][32]   sub-mins of the same, K types with a min
// So any quantised type has one of four layouts, and its integers, scales and mins are kept exactly.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minfer::opencl {

constexpr uint64_t kTileRows = 32;

enum class WeightForm { kF32, kF16, kBf16, kQ, kQMin, kK, kKMin, kKMins };  // kKMins: one min per 16 columns

struct WeightFormInfo {
  WeightForm form;
  bool has_min;
  bool has_sub;
  bool is_float() const { return form <= WeightForm::kBf16; }
};

// nullptr for a type that the backend does not know.
const WeightFormInfo* weight_form(uint32_t dtype);

// Bytes on the device of 32 rows of n_cols columns, a whole number of the type's blocks.
uint64_t tile_group_bytes(uint32_t dtype, uint64_t n_cols);

// Fills the tiles of n_rows rows, at most 32, that follow one another from `rows` on, as they lie in the file.
void make_tiles(uint32_t dtype, const void* rows, uint64_t n_rows, uint64_t n_cols, void* tiles);

// One row as f32.
void row_to_floats(uint32_t dtype, const void* row, uint64_t n_cols, float* out);

}  // namespace minfer::opencl
