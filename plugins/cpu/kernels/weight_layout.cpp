// Packing and dequantisation. Plain code: packing runs once per model, dequantisation reads single embedding rows.
#include "kernels/weight_layout.hpp"

#include <cstring>

#include "kernels/float16.hpp"
#include "kernels/gguf_block.hpp"
#include "kernels/packed_format.hpp"

namespace minfer::cpu {
namespace {

using Words = uint16_t __attribute__((vector_size(16), may_alias));
using Dwords = uint32_t __attribute__((vector_size(16), may_alias));

// The 32 bytes of each of four rows (row_bytes apart in q) to v[j] + at: dword j of row r in storage order goes to dword r.
void transpose_rows(const uint8_t* q, size_t row_bytes, uint8_t (*v)[64], size_t at) {
  Dwords low[4], high[4];  // dwords 0..3 and 4..7 of each row
  for (size_t r = 0; r < 4; ++r) {
    Words a, b;
    std::memcpy(&a, q + r * row_bytes, 16);
    std::memcpy(&b, q + r * row_bytes + 16, 16);
    low[r] = reinterpret_cast<Dwords>(__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
    high[r] = reinterpret_cast<Dwords>(__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15));
  }
  const auto store = [&](const Dwords* rows, uint8_t(*out)[64]) {
    const Dwords a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5), b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const Dwords c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7), d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    const Dwords columns[4] = {__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
                               __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
    for (int j = 0; j < 4; ++j) std::memcpy(out[j] + at, &columns[j], 16);
  };
  store(low, v);
  store(high, v + 4);
}

template <WeightType type>
void pack_block(const uint8_t* first_row, size_t row_bytes, size_t n_rows, size_t block, uint8_t* group) {
  constexpr QuantFormat format = quant_format(type);
  const PackedBlock at = packed_block(format, block);
  RowBlock rows[kGroupRows];
  if (n_rows < kGroupRows) std::memset(rows, 0, sizeof rows);
  for (size_t r = 0; r < n_rows; ++r) {
    read_row_block<type>(first_row + r * row_bytes, block, &rows[r]);
    store_row_scales<type>(rows[r], at, r, group);
  }
  alignas(64) uint8_t v[8][64];
  for (size_t r = 0; r < kGroupRows; r += 4) transpose_rows(rows[r].q, sizeof(RowBlock), v, 4 * r);
  for (size_t lane = 0; lane < 64; ++lane) pack_lane<format.bits>(&v[0][lane], group + at.planes + lane);
}

// The inverse of pack_block for one row.
template <WeightType type>
void read_packed_row(const uint8_t* group, size_t block, size_t r, RowBlock* out) {
  constexpr QuantFormat format = quant_format(type);
  const PackedBlock at = packed_block(format, block);
  alignas(64) uint8_t v[8][64];
  for (size_t t = 0; t < 4; ++t) unpack_lane<format.bits>(group + at.planes + 4 * r + t, &v[0][4 * r + t]);
  for (size_t p = 0; p < 32; ++p) out->q[storage_column(p)] = v[p / 4][4 * r + p % 4];
  out->d = load_u16(group + at.d + 2 * r);
  if (format.is_k() || format.has_min) out->m = load_u16(group + at.m + 2 * r);
  const uint8_t* sub = group + at.sub_scales;
  if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) {
    for (int s = 0; s < 2; ++s) {
      out->scale[s] = static_cast<int8_t>(sub[r]);
      out->min[s] = sub[16 + r];
    }
  } else if constexpr (format.is_k()) {
    for (size_t s = 0; s < 2; ++s) {
      const uint8_t byte = sub[2 * r + s];
      out->scale[s] = static_cast<int8_t>(type == WeightType::kQ2_K ? byte & 15 : byte);
      out->min[s] = type == WeightType::kQ2_K ? byte >> 4 : 0;
    }
  }
}

template <WeightType type>
void to_floats(const RowBlock& block, float* out) {
  constexpr QuantFormat format = quant_format(type);
  const float d = f16_to_f32(block.d);
  for (int k = 0; k < 32; ++k) {
    const int stored = type == WeightType::kQ8_0 ? static_cast<int8_t>(block.q[k]) : block.q[k];
    const float q = static_cast<float>(stored - format.offset);
    if constexpr (!format.is_k()) {
      out[k] = format.has_min ? d * q + f16_to_f32(block.m) : d * q;
    } else {
      const float scaled = d * static_cast<float>(block.scale[k / 16]) * q;
      out[k] = format.has_min ? scaled - f16_to_f32(block.m) * static_cast<float>(block.min[k / 16]) : scaled;
    }
  }
}

size_t float_bytes(WeightType type) { return type == WeightType::kF32 ? 4 : 2; }

float load_float(WeightType type, const uint8_t* p) {
  if (type == WeightType::kF16) return f16_to_f32(load_u16(p));
  if (type == WeightType::kBF16) return bf16_to_f32(load_u16(p));
  float value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

void pack_float_group(size_t bytes, const uint8_t* first_row, size_t n_rows, size_t cols, uint8_t* group) {
  for (size_t k = 0; k < cols; ++k)
    for (size_t r = 0; r < n_rows; ++r) std::memcpy(group + (k * kGroupRows + r) * bytes, first_row + (r * cols + k) * bytes, bytes);
}

}  // namespace

bool weight_type_known(uint32_t gguf_type) {
  const WeightType type{gguf_type};
  return weight_type_is_float(type) || quant_format(type).bits != 0;
}

bool weight_type_is_float(WeightType type) { return type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBF16; }

size_t weight_block_cols(WeightType type) { return quant_format(type).file_cols; }

size_t gguf_row_bytes(WeightType type, size_t cols) {
  if (weight_type_is_float(type)) return cols * float_bytes(type);
  const QuantFormat format = quant_format(type);
  return cols / format.file_cols * format.file_bytes;
}

size_t packed_group_bytes(WeightType type, size_t cols) {
  if (weight_type_is_float(type)) return (cols * kGroupRows * float_bytes(type) + kLineBytes - 1) / kLineBytes * kLineBytes;
  const QuantFormat format = quant_format(type);
  const size_t n_blocks = cols / kBlockCols;
  // Where a block after an even number of blocks would start is where the group ends; an odd last block ends at its planes' end.
  if (n_blocks % 2 == 0 || format.is_k() || format.has_min) return packed_block(format, n_blocks).d;
  return packed_block(format, n_blocks - 1).planes + format.plane_bytes();
}

void pack_groups(WeightType type, const void* src, size_t rows, size_t cols, size_t group_begin, size_t group_end, void* packed) {
  const size_t row_bytes = gguf_row_bytes(type, cols), group_bytes = packed_group_bytes(type, cols);
  for (size_t g = group_begin; g < group_end; ++g) {
    const uint8_t* first_row = static_cast<const uint8_t*>(src) + g * kGroupRows * row_bytes;
    const size_t n_rows = rows - g * kGroupRows < kGroupRows ? rows - g * kGroupRows : kGroupRows;
    uint8_t* group = static_cast<uint8_t*>(packed) + g * group_bytes;
    if (weight_type_is_float(type)) {
      std::memset(group, 0, group_bytes);
      pack_float_group(float_bytes(type), first_row, n_rows, cols, group);
      continue;
    }
    if (n_rows < kGroupRows || cols % 64 != 0) std::memset(group, 0, group_bytes);
    with_quant_type(type, [&]<WeightType t>() {
      for (size_t b = 0; b < cols / kBlockCols; ++b) pack_block<t>(first_row, row_bytes, n_rows, b, group);
    });
  }
}

void dequantize_row(WeightType type, const void* packed, size_t cols, size_t row, float* out) {
  const uint8_t* group = static_cast<const uint8_t*>(packed) + row / kGroupRows * packed_group_bytes(type, cols);
  const size_t r = row % kGroupRows;
  if (weight_type_is_float(type)) {
    for (size_t k = 0; k < cols; ++k) out[k] = load_float(type, group + (k * kGroupRows + r) * float_bytes(type));
    return;
  }
  with_quant_type(type, [&]<WeightType t>() {
    for (size_t b = 0; b < cols / kBlockCols; ++b) {
      RowBlock block;
      read_packed_row<t>(group, b, r, &block);
      to_floats<t>(block, out + b * kBlockCols);
    }
  });
}

void dequantize_row_gguf(WeightType type, const void* src_row, size_t cols, float* out) {
  const uint8_t* row = static_cast<const uint8_t*>(src_row);
  if (weight_type_is_float(type)) {
    for (size_t k = 0; k < cols; ++k) out[k] = load_float(type, row + k * float_bytes(type));
    return;
  }
  with_quant_type(type, [&]<WeightType t>() {
    for (size_t b = 0; b < cols / kBlockCols; ++b) {
      RowBlock block;
      read_row_block<t>(row, b, &block);
      to_floats<t>(block, out + b * kBlockCols);
    }
  });
}

}  // namespace minfer::cpu
