// Positions inside a packed group of 16 rows. Internal to the kernels.
//
// Every function is in an anonymous namespace on purpose: files compiled for different instruction sets include this
// header, and each must use its own copy.
//
// A block is 32 columns of the 16 rows. Its values are first put into eight vectors v0..v7 of 64 bytes: byte 4r+t of
// v[j] is row r, column 2j+t for t = 0, 1 and column 16+2j+(t-2) for t = 2, 3. (So the two 16-bit halves of a row's
// dword belong to the two 16-column sub-blocks of Q2_K, Q3_K and Q6_K, and one multiply-add applies both sub-scales.)
// Then the eight vectors are squeezed into `bits` planes of 64 bytes, see pack_planes.
//
// Around the planes (all scales are f16, [16] = one per row):
//   Q4_0 Q5_0 Q8_0   pairs of blocks: d[16] of both (64 bytes), planes, planes; an odd last block has zeros as second d[16]
//   Q4_1 Q5_1        per block: d[16], m[16], planes
//   K types          per 256 columns: d[16], dmin[16] (zero where the type has none), 8 x 32 bytes of sub-scales, 8 x planes
//     sub-scales of a block: Q4_K, Q5_K: scale[16], min[16];  Q3_K, Q6_K: int8 [row][sub-block];
//                            Q2_K: [row][sub-block] scale | min << 4
//   F32 F16 BF16     per column: 16 values; the group is padded to 64 bytes
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weight_layout.hpp"

namespace minfer::cpu {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kBlockCols = 32;
constexpr size_t kSubScaleBytes = 32;

struct QuantFormat {
  size_t file_bytes;  // of one GGUF block
  size_t file_cols;   // columns of one GGUF block: 32, or 256 for K types
  int bits;           // of a stored value = planes per block
  int offset;         // weight integer = stored value - offset
  bool has_min;
  constexpr size_t plane_bytes() const { return static_cast<size_t>(bits) * kLineBytes; }
  constexpr bool is_k() const { return file_cols == 256; }
};

constexpr QuantFormat quant_format(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0: return {18, 32, 4, 8, false};
    case WeightType::kQ4_1: return {20, 32, 4, 0, true};
    case WeightType::kQ5_0: return {22, 32, 5, 16, false};
    case WeightType::kQ5_1: return {24, 32, 5, 0, true};
    case WeightType::kQ8_0: return {34, 32, 8, 0, false};  // stored as signed bytes
    case WeightType::kQ2_K: return {84, 256, 2, 0, true};
    case WeightType::kQ3_K: return {110, 256, 3, 4, false};
    case WeightType::kQ4_K: return {144, 256, 4, 0, true};
    case WeightType::kQ5_K: return {176, 256, 5, 0, true};
    case WeightType::kQ6_K: return {210, 256, 6, 32, false};
    default: return {0, 1, 0, 0, false};
  }
}

// Calls f.template operator()<type>() for a quantised type.
template <class F>
inline void with_quant_type(WeightType type, const F& f) {
  switch (type) {
    case WeightType::kQ4_0: return f.template operator()<WeightType::kQ4_0>();
    case WeightType::kQ4_1: return f.template operator()<WeightType::kQ4_1>();
    case WeightType::kQ5_0: return f.template operator()<WeightType::kQ5_0>();
    case WeightType::kQ5_1: return f.template operator()<WeightType::kQ5_1>();
    case WeightType::kQ8_0: return f.template operator()<WeightType::kQ8_0>();
    case WeightType::kQ2_K: return f.template operator()<WeightType::kQ2_K>();
    case WeightType::kQ3_K: return f.template operator()<WeightType::kQ3_K>();
    case WeightType::kQ4_K: return f.template operator()<WeightType::kQ4_K>();
    case WeightType::kQ5_K: return f.template operator()<WeightType::kQ5_K>();
    case WeightType::kQ6_K: return f.template operator()<WeightType::kQ6_K>();
    default: return;
  }
}

struct PackedBlock {
  size_t d;           // offset in the group of d[16]
  size_t m;           // of m[16] or dmin[16]; types with a min and K types only
  size_t sub_scales;  // K types only
  size_t planes;
};

inline PackedBlock packed_block(const QuantFormat& format, size_t block) {
  const size_t planes = format.plane_bytes();
  if (format.is_k()) {
    const size_t super = block / 8 * (kLineBytes + 8 * (kSubScaleBytes + planes));
    const size_t sub = super + kLineBytes + block % 8 * kSubScaleBytes;
    return {super, super + 32, sub, super + kLineBytes + 8 * kSubScaleBytes + block % 8 * planes};
  }
  if (format.has_min) {
    const size_t start = block * (kLineBytes + planes);
    return {start, start + 32, 0, start + kLineBytes};
  }
  const size_t pair = block / 2 * (kLineBytes + 2 * planes);
  return {pair + block % 2 * 32, 0, 0, pair + kLineBytes + block % 2 * planes};
}

// Column of byte p (0..31) of a row's 32 bytes in storage order (its eight dwords one after the other).
constexpr size_t storage_column(size_t p) { return p % 4 / 2 * 16 + p / 4 * 2 + p % 2; }

// The values of one byte lane: plane i at planes[64 i], vector j at v[64 j].
template <int bits>
inline void unpack_lane(const uint8_t* planes, uint8_t* v) {
  const auto b = [planes](int i) -> unsigned { return planes[i * 64]; };
  const auto put = [v](int j, unsigned value) { v[j * 64] = static_cast<uint8_t>(value); };
  if constexpr (bits == 8) {
    for (int j = 0; j < 8; ++j) put(j, b(j));
  } else if constexpr (bits == 6) {  // three vectors carry two bits each of a fourth
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 3; ++i) put(4 * h + i, b(3 * h + i) & 63);
      put(4 * h + 3, b(3 * h) >> 6 | b(3 * h + 1) >> 6 << 2 | b(3 * h + 2) >> 6 << 4);
    }
  } else if constexpr (bits == 5) {  // five vectors carry three bits each of three more
    for (int j = 0; j < 5; ++j) put(j, b(j) & 31);
    put(5, b(0) >> 5 | (b(3) >> 5 & 3) << 3);
    put(6, b(1) >> 5 | (b(4) >> 5 & 3) << 3);
    put(7, b(2) >> 5 | b(3) >> 7 << 3 | b(4) >> 7 << 4);
  } else if constexpr (bits == 4) {
    for (int j = 0; j < 4; ++j) {
      put(j, b(j) & 15);
      put(j + 4, b(j) >> 4);
    }
  } else if constexpr (bits == 3) {  // two vectors per plane, and two bits each of the last two
    for (int i = 0; i < 3; ++i) {
      put(2 * i, b(i) & 7);
      put(2 * i + 1, b(i) >> 3 & 7);
    }
    put(6, b(0) >> 6 | (b(1) >> 6 & 1) << 2);
    put(7, b(1) >> 7 | b(2) >> 6 << 1);
  } else {
    static_assert(bits == 2);
    for (int i = 0; i < 2; ++i)
      for (int s = 0; s < 4; ++s) put(4 * i + s, b(i) >> (2 * s) & 3);
  }
}

template <int bits>
inline void pack_lane(const uint8_t* v, uint8_t* planes) {
  const auto q = [v](int j) -> unsigned { return v[j * 64]; };
  const auto put = [planes](int i, unsigned value) { planes[i * 64] = static_cast<uint8_t>(value); };
  if constexpr (bits == 8) {
    for (int j = 0; j < 8; ++j) put(j, q(j));
  } else if constexpr (bits == 6) {
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < 3; ++i) put(3 * h + i, q(4 * h + i) | (q(4 * h + 3) >> (2 * i) & 3) << 6);
  } else if constexpr (bits == 5) {
    put(0, q(0) | (q(5) & 7) << 5);
    put(1, q(1) | (q(6) & 7) << 5);
    put(2, q(2) | (q(7) & 7) << 5);
    put(3, q(3) | q(5) >> 3 << 5 | (q(7) >> 3 & 1) << 7);
    put(4, q(4) | q(6) >> 3 << 5 | q(7) >> 4 << 7);
  } else if constexpr (bits == 4) {
    for (int j = 0; j < 4; ++j) put(j, q(j) | q(j + 4) << 4);
  } else if constexpr (bits == 3) {
    put(0, q(0) | q(1) << 3 | (q(6) & 3) << 6);
    put(1, q(2) | q(3) << 3 | q(6) >> 2 << 6 | (q(7) & 1) << 7);
    put(2, q(4) | q(5) << 3 | q(7) >> 1 << 6);
  } else {
    static_assert(bits == 2);
    for (int i = 0; i < 2; ++i) put(i, q(4 * i) | q(4 * i + 1) << 2 | q(4 * i + 2) << 4 | q(4 * i + 3) << 6);
  }
}

}  // namespace
}  // namespace minfer::cpu
