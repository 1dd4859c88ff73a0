// Reads 32 columns of a row of GGUF blocks into plain integers and raw scales. Used by packing and dequantisation only.
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

// Columns [32 block, 32 block + 32) of `row`.
template <WeightType type>
inline void read_row_block(const uint8_t* row, size_t block, RowBlock* out) {
  constexpr QuantFormat format = quant_format(type);
  const size_t j = block % (format.file_cols / 32);  // which 32 columns of a 256-column block
  const uint8_t* p = row + block / (format.file_cols / 32) * format.file_bytes;
  uint8_t* q = out->q;
  if constexpr (type == WeightType::kQ4_0) {
    out->d = load_u16(p);
    read_nibbles(p + 2, q);
  } else if constexpr (type == WeightType::kQ4_1) {
    out->d = load_u16(p);
    out->m = load_u16(p + 2);
    read_nibbles(p + 4, q);
  } else if constexpr (type == WeightType::kQ5_0) {
    out->d = load_u16(p);
    read_nibbles(p + 6, q);
    add_fifth_bits(p + 2, q);
  } else if constexpr (type == WeightType::kQ5_1) {
    out->d = load_u16(p);
    out->m = load_u16(p + 2);
    read_nibbles(p + 8, q);
    add_fifth_bits(p + 4, q);
  } else if constexpr (type == WeightType::kQ8_0) {
    out->d = load_u16(p);
    std::memcpy(q, p + 2, 32);
  } else if constexpr (type == WeightType::kQ2_K) {
    out->d = load_u16(p + 80);
    out->m = load_u16(p + 82);
    const uint8_t* qs = p + 16 + 32 * (j / 4);
    for (int l = 0; l < 32; ++l) q[l] = qs[l] >> (2 * (j % 4)) & 3;
    for (int s = 0; s < 2; ++s) {
      out->scale[s] = static_cast<int8_t>(p[2 * j + s] & 15);
      out->min[s] = p[2 * j + s] >> 4;
    }
  } else if constexpr (type == WeightType::kQ3_K) {
    out->d = load_u16(p + 108);
    out->m = 0;
    const uint8_t* qs = p + 32 + 32 * (j / 4);
    for (int l = 0; l < 32; ++l) q[l] = static_cast<uint8_t>((qs[l] >> (2 * (j % 4)) & 3) | (p[l] >> j & 1) << 2);
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
    const uint8_t* qs = p + (type == WeightType::kQ5_K ? 48 : 16) + 32 * (j / 2);
    const int shift = j % 2 * 4;
    for (int l = 0; l < 32; ++l) q[l] = qs[l] >> shift & 15;
    if constexpr (type == WeightType::kQ5_K)
      for (int l = 0; l < 32; ++l) q[l] = static_cast<uint8_t>(q[l] | (p[16 + l] >> j & 1) << 4);
  } else {
    static_assert(type == WeightType::kQ6_K);
    out->d = load_u16(p + 208);
    out->m = 0;
    const size_t h = j / 4, g = j % 4;
    const uint8_t* ql = p + 64 * h + g % 2 * 32;
    const uint8_t* qh = p + 128 + 32 * h;
    const int low_shift = g / 2 * 4, high_shift = static_cast<int>(2 * g);
    for (int l = 0; l < 32; ++l) q[l] = static_cast<uint8_t>((ql[l] >> low_shift & 15) | (qh[l] >> high_shift & 3) << 4);
    for (int s = 0; s < 2; ++s) {
      out->scale[s] = static_cast<int8_t>(p[192 + 2 * j + s]);
      out->min[s] = 0;
    }
  }
}

}  // namespace
}  // namespace minfer::cpu
