// Block formats: the structures block_q* of the GGUF specification, little endian.
#include "gguf_tiles.hpp"

#include <cstring>

#include "minfer/plugin/dtype.hpp"

namespace minfer::opencl {
namespace {

constexpr uint64_t kValueBytes = 32 * kTileRows;  // of the integers of a tile
constexpr uint64_t kLine = 2 * kTileRows;         // one f16, or two bytes, of each row

uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

float bits_to_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return bits_to_float(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return bits_to_float(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

// 32 columns of one row: weight = d * scale * q, then - m * min (K types) or + m.
struct Columns {
  int8_t q[32];
  uint16_t d = 0, m = 0;
  int8_t scale[2] = {1, 1};
  uint8_t min[2] = {1, 1};
};

void nibbles(const uint8_t* packed, int8_t* q) {
  for (int i = 0; i < 16; ++i) {
    q[i] = static_cast<int8_t>(packed[i] & 15);
    q[i + 16] = static_cast<int8_t>(packed[i] >> 4);
  }
}

// The fifth bits of 32 values, bit i of four bytes for value i; then the offset of the type.
void fifth_bits(const uint8_t* bits, int offset, int8_t* q) {
  for (int i = 0; i < 32; ++i) q[i] = static_cast<int8_t>((q[i] | (bits[i / 8] >> (i % 8) & 1) << 4) - offset);
}

// Sub-block j of the eight 6-bit scales and mins of Q4_K and Q5_K.
void k4_scales(const uint8_t* s, uint64_t j, Columns* out) {
  const unsigned scale = j < 4 ? s[j] & 63u : (s[j + 4] & 15u) | (s[j - 4] >> 6 << 4);
  const unsigned min = j < 4 ? s[j + 4] & 63u : s[j + 4] >> 4 | (s[j] >> 6 << 4);
  out->scale[0] = out->scale[1] = static_cast<int8_t>(scale);
  out->min[0] = out->min[1] = static_cast<uint8_t>(min);
}

// `block` is a block of the file, j says which 32 of its columns are meant.
void read_columns(uint32_t dtype, const uint8_t* block, uint64_t j, Columns* out) {
  int8_t* q = out->q;
  const auto put = [q](int i, int value) { q[i] = static_cast<int8_t>(value); };
  switch (dtype) {
    case MI_TYPE_Q4_0:
      out->d = load_u16(block);
      nibbles(block + 2, q);
      for (int i = 0; i < 32; ++i) put(i, q[i] - 8);
      return;
    case MI_TYPE_Q4_1:
      out->d = load_u16(block);
      out->m = load_u16(block + 2);
      nibbles(block + 4, q);
      return;
    case MI_TYPE_Q5_0:
      out->d = load_u16(block);
      nibbles(block + 6, q);
      fifth_bits(block + 2, 16, q);
      return;
    case MI_TYPE_Q5_1:
      out->d = load_u16(block);
      out->m = load_u16(block + 2);
      nibbles(block + 8, q);
      fifth_bits(block + 4, 0, q);
      return;
    case MI_TYPE_Q8_0:
      out->d = load_u16(block);
      std::memcpy(q, block + 2, 32);
      return;
    case MI_TYPE_Q2_K:
      out->d = load_u16(block + 80);
      out->m = load_u16(block + 82);
      for (int i = 0; i < 32; ++i) put(i, block[16 + 32 * (j / 4) + static_cast<uint64_t>(i)] >> (2 * (j % 4)) & 3);
      for (int s = 0; s < 2; ++s) {
        const uint8_t both = block[2 * j + static_cast<uint64_t>(s)];
        out->scale[s] = static_cast<int8_t>(both & 15);
        out->min[s] = both >> 4;
      }
      return;
    case MI_TYPE_Q3_K:
      out->d = load_u16(block + 108);
      for (uint64_t i = 0; i < 32; ++i) {
        const int low = block[32 + 32 * (j / 4) + i] >> (2 * (j % 4)) & 3, high = block[i] >> j & 1;
        put(static_cast<int>(i), (low | high << 2) - 4);
      }
      for (uint64_t s = 0; s < 2; ++s) {
        const uint8_t* scales = block + 96;
        const uint64_t i = 2 * j + s;
        const int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4, high = scales[8 + i % 4] >> (2 * (i / 4)) & 3;
        out->scale[s] = static_cast<int8_t>((low | high << 4) - 32);
      }
      return;
    case MI_TYPE_Q4_K:
    case MI_TYPE_Q5_K: {
      out->d = load_u16(block);
      out->m = load_u16(block + 2);
      k4_scales(block + 4, j, out);
      const bool five = dtype == MI_TYPE_Q5_K;
      const uint8_t* low = block + (five ? 48 : 16) + 32 * (j / 2);
      for (int i = 0; i < 32; ++i) put(i, (low[i] >> (j % 2 * 4) & 15) | (five ? (block[16 + i] >> j & 1) << 4 : 0));
      return;
    }
    default: {  // Q6_K
      out->d = load_u16(block + 208);
      const uint8_t* low = block + 64 * (j / 4) + 32 * (j % 2);
      const uint8_t* high = block + 128 + 32 * (j / 4);
      for (int i = 0; i < 32; ++i) put(i, ((low[i] >> (j % 4 / 2 * 4) & 15) | (high[i] >> (2 * (j % 4)) & 3) << 4) - 32);
      for (uint64_t s = 0; s < 2; ++s) out->scale[s] = static_cast<int8_t>(block[192 + 2 * j + s]);
      return;
    }
  }
}

// Columns [32 b, 32 b + 32) of a row.
Columns columns_of(const sdk::DTypeInfo& type, const uint8_t* row, uint64_t b) {
  const uint64_t per_block = type.block_elements / 32;
  Columns out;
  read_columns(type.dtype, row + b / per_block * type.block_bytes, b % per_block, &out);
  return out;
}

uint64_t tile_bytes(const WeightFormInfo& form) {
  return kValueBytes + kLine * (1u + form.has_min + form.has_sub + (form.has_min && form.has_sub));
}

}  // namespace

const WeightFormInfo* weight_form(uint32_t dtype) {
  static constexpr WeightFormInfo kF32{WeightForm::kF32, false, false}, kF16{WeightForm::kF16, false, false};
  static constexpr WeightFormInfo kBf16{WeightForm::kBf16, false, false}, kQ{WeightForm::kQ, false, false};
  static constexpr WeightFormInfo kQMin{WeightForm::kQMin, true, false}, kK{WeightForm::kK, false, true},
      kKMin{WeightForm::kKMin, true, true}, kKMins{WeightForm::kKMins, true, true};
  switch (dtype) {
    case MI_TYPE_F32: return &kF32;
    case MI_TYPE_F16: return &kF16;
    case MI_TYPE_BF16: return &kBf16;
    case MI_TYPE_Q4_0:
    case MI_TYPE_Q5_0:
    case MI_TYPE_Q8_0: return &kQ;
    case MI_TYPE_Q4_1:
    case MI_TYPE_Q5_1: return &kQMin;
    case MI_TYPE_Q3_K:
    case MI_TYPE_Q6_K: return &kK;
    case MI_TYPE_Q4_K:
    case MI_TYPE_Q5_K: return &kKMin;
    case MI_TYPE_Q2_K: return &kKMins;
    default: return nullptr;
  }
}

uint64_t tile_group_bytes(uint32_t dtype, uint64_t n_cols) {
  const WeightFormInfo& form = *weight_form(dtype);
  if (form.is_float()) return n_cols * kTileRows * sdk::find_dtype(dtype)->block_bytes;
  return n_cols / 32 * tile_bytes(form);
}

void make_tiles(uint32_t dtype, const void* rows, uint64_t n_rows, uint64_t n_cols, void* tiles) {
  const WeightFormInfo& form = *weight_form(dtype);
  const sdk::DTypeInfo& type = *sdk::find_dtype(dtype);
  const uint64_t row_bytes = sdk::row_bytes(dtype, n_cols);
  uint8_t* out = static_cast<uint8_t*>(tiles);
  if (n_rows < kTileRows) std::memset(out, 0, tile_group_bytes(dtype, n_cols));
  for (uint64_t r = 0; r < n_rows; ++r) {
    const uint8_t* row = static_cast<const uint8_t*>(rows) + r * row_bytes;
    if (form.is_float()) {
      const uint64_t size = type.block_bytes;
      for (uint64_t k = 0; k < n_cols; ++k) std::memcpy(out + (k * kTileRows + r) * size, row + k * size, size);
      continue;
    }
    for (uint64_t b = 0; b < n_cols / 32; ++b) {
      const Columns columns = columns_of(type, row, b);
      uint8_t* tile = out + b * tile_bytes(form);
      for (uint64_t j = 0; j < 8; ++j) std::memcpy(tile + (j * kTileRows + r) * 4, columns.q + 4 * j, 4);
      uint8_t* line = tile + kValueBytes;
      std::memcpy(line + 2 * r, &columns.d, 2);
      if (form.has_min) std::memcpy(line + kLine + 2 * r, &columns.m, 2);
      uint8_t* sub = line + kLine * (1u + form.has_min);
      for (uint64_t s = 0; s < 2 && form.has_sub; ++s) {
        sub[s * kTileRows + r] = static_cast<uint8_t>(columns.scale[s]);
        if (form.has_min) sub[kLine + s * kTileRows + r] = columns.min[s];
      }
    }
  }
}

void row_to_floats(uint32_t dtype, const void* row, uint64_t n_cols, float* out) {
  const WeightFormInfo& form = *weight_form(dtype);
  const uint8_t* bytes = static_cast<const uint8_t*>(row);
  if (form.is_float()) {
    for (uint64_t k = 0; k < n_cols; ++k) {
      if (form.form == WeightForm::kF32)
        std::memcpy(out + k, bytes + 4 * k, 4);
      else
        out[k] =
            form.form == WeightForm::kF16 ? half_to_float(load_u16(bytes + 2 * k)) : bits_to_float(uint32_t{load_u16(bytes + 2 * k)} << 16);
    }
    return;
  }
  for (uint64_t b = 0; b < n_cols / 32; ++b) {
    const Columns columns = columns_of(*sdk::find_dtype(dtype), bytes, b);
    const float d = half_to_float(columns.d), m = form.has_min ? half_to_float(columns.m) : 0.0f;
    for (uint64_t i = 0; i < 32; ++i) {
      const float q = columns.q[i];
      float value = d * q;
      if (form.has_sub) value = d * static_cast<float>(columns.scale[i / 16]) * q;
      if (form.has_min) value = form.has_sub ? value - m * static_cast<float>(columns.min[i / 16]) : value + m;
      out[b * 32 + i] = value;
    }
  }
}

}  // namespace minfer::opencl
