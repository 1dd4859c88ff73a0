// Reads 32 columns of a row of GGUF blocks into plain integers and raw scales. Used by packing and dequantisation only.
// Anonymous namespace: see packed_format.hpp.
// Formats: ggml's block_q* structures and its dequantize_row_* functions (little endian).
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/packed_format.hpp"

namespace minfer::cpu {
namespace {

// One row of one block. weight = f32(d) * scale * (q - offset) -+ min, see to_floats in weight_layout.cpp.
struct RowBlock {
  uint8_t q[32];    // stored values, columns in natural order (Q8_0: signed bytes)
  uint16_t d, m;    // f16 bits; m is the min of Q4_1 and Q5_1, dmin of K types
  int8_t scale[2];  // per 16 columns; K types only
  uint8_t min[2];
};

inline uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Byte i of entry n is 16 where bit i of n is set: the fifth bits of eight values.
struct FifthBits {
  uint64_t of[256];
  constexpr FifthBits() : of() {
    for (int n = 0; n < 256; ++n)
      for (int i = 0; i < 8; ++i)
        if (n >> i & 1) of[n] |= uint64_t{16} << (8 * i);
  }
};
constexpr FifthBits kFifthBits;

inline void read_nibbles(const uint8_t* qs, uint8_t* q) {
  for (int e = 0; e < 16; ++e) {
    q[e] = qs[e] & 15;
    q[e + 16] = qs[e] >> 4;
  }
}

inline void add_fifth_bits(const uint8_t* qh, uint8_t* q) {
  for (int i = 0; i < 4; ++i) {
    uint64_t eight;
    std::memcpy(&eight, q + 8 * i, 8);
    eight |= kFifthBits.of[qh[i]];
    std::memcpy(q + 8 * i, &eight, 8);
  }
}

// The 6-bit scale and min of sub-block j (0..7) of Q4_K and Q5_K.
inline void read_k4_scale(const uint8_t* scales, size_t j, RowBlock* out) {
  unsigned scale, min;
  if (j < 4) {
    scale = scales[j] & 63;
    min = scales[j + 4] & 63;
  } else {
    scale = (scales[j + 4] & 15) | scales[j - 4] >> 6 << 4;
    min = scales[j + 4] >> 4 | scales[j] >> 6 << 4;
  }
  out->scale[0] = out->scale[1] = static_cast<int8_t>(scale);
  out->min[0] = out->min[1] = static_cast<uint8_t>(min);
}

// Where the 32 columns of block `block` lie in `row`: their GGUF block, and which 32 columns of it they are.
struct BlockPlace {
  const uint8_t* p;
  size_t j;
};
template <WeightType type>
inline BlockPlace place_in_row(const uint8_t* row, size_t block) {
  constexpr QuantFormat format = quant_format(type);
  constexpr size_t n = format.file_cols / 32;
  return {row + block / n * format.file_bytes, block % n};
}

// What a block has beside its values: d, and m, scale and min where the type has them.
template <WeightType type>
inline void read_row_scales(const uint8_t* row, size_t block, RowBlock* out) {
  const auto [p, j] = place_in_row<type>(row, block);
  if constexpr (type == WeightType::kQ4_1 || type == WeightType::kQ5_1) {
    out->d = load_u16(p);
    out->m = load_u16(p + 2);
  } else if constexpr (type == WeightType::kQ2_K) {
    out->d = load_u16(p + 80);
    out->m = load_u16(p + 82);
    for (int s = 0; s < 2; ++s) {
      out->scale[s] = static_cast<int8_t>(p[2 * j + s] & 15);
      out->min[s] = p[2 * j + s] >> 4;
    }
  } else if constexpr (type == WeightType::kQ3_K) {
    out->d = load_u16(p + 108);
    out->m = 0;
    const uint8_t* scales = p + 96;
    for (size_t s = 0; s < 2; ++s) {
      const size_t i = 2 * j + s;
      const int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4;
      const int high = scales[8 + i % 4] >> (2 * (i / 4)) & 3;
      out->scale[s] = static_cast<int8_t>((low | high << 4) - 32);
      out->min[s] = 0;
    }
  } else if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) {
    out->d = load_u16(p);
    out->m = load_u16(p + 2);
    read_k4_scale(p + 4, j, out);
  } else if constexpr (type == WeightType::kQ6_K) {
    out->d = load_u16(p + 208);
    out->m = 0;
    for (int s = 0; s < 2; ++s) {
      out->scale[s] = static_cast<int8_t>(p[192 + 2 * j + s]);
      out->min[s] = 0;
    }
  } else {
    out->d = load_u16(p);
  }
}

// Offset in a GGUF block of the nibbles, of types that have 32 of them, and of the fifth bits before them.
constexpr size_t nibbles_offset(WeightType type) { return quant_format(type).file_bytes - 16; }
constexpr size_t fifth_bits_offset(WeightType type) { return nibbles_offset(type) - 4; }

template <WeightType type>
inline void read_row_values(const uint8_t* row, size_t block, uint8_t* q) {
  const auto [p, j] = place_in_row<type>(row, block);
  if constexpr (type == WeightType::kQ8_0) {
    std::memcpy(q, p + 2, 32);
  } else if constexpr (type == WeightType::kQ2_K) {
    const uint8_t* qs = p + 16 + 32 * (j / 4);
    for (int l = 0; l < 32; ++l) q[l] = qs[l] >> (2 * (j % 4)) & 3;
  } else if constexpr (type == WeightType::kQ3_K) {
    const uint8_t* qs = p + 32 + 32 * (j / 4);
    for (int l = 0; l < 32; ++l) q[l] = static_cast<uint8_t>((qs[l] >> (2 * (j % 4)) & 3) | (p[l] >> j & 1) << 2);
  } else if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) {
    const uint8_t* qs = p + (type == WeightType::kQ5_K ? 48 : 16) + 32 * (j / 2);
    const int shift = j % 2 * 4;
    for (int l = 0; l < 32; ++l) q[l] = qs[l] >> shift & 15;
    if constexpr (type == WeightType::kQ5_K)
      for (int l = 0; l < 32; ++l) q[l] = static_cast<uint8_t>(q[l] | (p[16 + l] >> j & 1) << 4);
  } else if constexpr (type == WeightType::kQ6_K) {
    const size_t h = j / 4, g = j % 4;
    const uint8_t* ql = p + 64 * h + g % 2 * 32;
    const uint8_t* qh = p + 128 + 32 * h;
    const int low_shift = g / 2 * 4, high_shift = static_cast<int>(2 * g);
    for (int l = 0; l < 32; ++l) q[l] = static_cast<uint8_t>((ql[l] >> low_shift & 15) | (qh[l] >> high_shift & 3) << 4);
  } else {  // Q4_0, Q4_1, Q5_0, Q5_1
    read_nibbles(p + nibbles_offset(type), q);
    if constexpr (quant_format(type).bits == 5) add_fifth_bits(p + fifth_bits_offset(type), q);
  }
}

// Columns [32 block, 32 block + 32) of `row`.
template <WeightType type>
inline void read_row_block(const uint8_t* row, size_t block, RowBlock* out) {
  read_row_scales<type>(row, block, out);
  read_row_values<type>(row, block, out->q);
}

inline void store_u16(uint8_t* p, uint16_t value) { std::memcpy(p, &value, sizeof value); }

// The scales of row r of a group to where the packed block has them.
template <WeightType type>
inline void store_row_scales(const RowBlock& row, const PackedBlock& at, size_t r, uint8_t* group) {
  constexpr QuantFormat format = quant_format(type);
  store_u16(group + at.d + 2 * r, row.d);
  if (format.is_k() || format.has_min) store_u16(group + at.m + 2 * r, row.m);
  if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) {
    group[at.sub_scales + r] = static_cast<uint8_t>(row.scale[0]);
    group[at.sub_scales + 16 + r] = row.min[0];
  } else if constexpr (format.is_k()) {
    for (size_t s = 0; s < 2; ++s)
      group[at.sub_scales + 2 * r + s] = static_cast<uint8_t>(static_cast<uint8_t>(row.scale[s]) | row.min[s] << 4);
  }
}

}  // namespace
}  // namespace minfer::cpu
