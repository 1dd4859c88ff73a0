// Packing with AVX2: the bytes are those of pack_groups (weight_layout.cpp), which does what is left: float types and a last group of
// fewer than 16 rows.
#include "kernels/avx2/unpack_avx2.hpp"
#include "kernels/gguf_block.hpp"
#include "kernels/matmul_tables.hpp"

namespace minfer::cpu {
namespace {

inline __m256i low_bits(__m256i x, int mask) { return _mm256_and_si256(x, _mm256_set1_epi8(static_cast<char>(mask))); }
// Bytes moved up or down; what comes from the neighbour is masked away.
template <int shift>
inline __m256i up(__m256i x, int mask) {
  return low_bits(_mm256_slli_epi16(x, shift), mask);
}
inline __m256i down(__m256i x, int shift, int mask) { return low_bits(_mm256_srl_epi16(x, _mm_cvtsi32_si128(shift)), mask); }
inline __m256i either(__m256i a, __m256i b) { return _mm256_or_si256(a, b); }

// 16 where the bit of the column is set.
inline __m256i fifth_bits(const uint8_t* p) {
  const __m256i byte_of_column = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                                  2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit_of_column = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i bits = _mm256_and_si256(_mm256_shuffle_epi8(broadcast32(p), byte_of_column), bit_of_column);
  return low_bits(_mm256_cmpeq_epi8(bits, bit_of_column), 16);
}

// The stored values of 32 columns of a row, in natural order: read_row_values.
template <WeightType type>
inline __m256i row_values(const uint8_t* row, size_t block) {
  const auto [p, j] = place_in_row<type>(row, block);
  const int n = static_cast<int>(j);
  if constexpr (type == WeightType::kQ8_0) {
    return load256(p + 2);
  } else if constexpr (type == WeightType::kQ2_K) {
    return down(load256(p + 16 + 32 * (j / 4)), 2 * (n % 4), 3);
  } else if constexpr (type == WeightType::kQ3_K) {
    const __m256i low = down(load256(p + 32 + 32 * (j / 4)), 2 * (n % 4), 3);
    return either(low, up<2>(down(load256(p), n, 1), 4));
  } else if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) {
    const __m256i low = down(load256(p + (type == WeightType::kQ5_K ? 48 : 16) + 32 * (j / 2)), 4 * (n % 2), 15);
    if constexpr (type == WeightType::kQ4_K) return low;
    return either(low, up<4>(down(load256(p + 16), n, 1), 16));
  } else if constexpr (type == WeightType::kQ6_K) {
    const __m256i low = down(load256(p + 64 * (j / 4) + 32 * (j % 2)), n % 4 / 2 * 4, 15);
    return either(low, up<4>(down(load256(p + 128 + 32 * (j / 4)), 2 * (n % 4), 3), 48));
  } else {
    const __m128i nibbles = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + nibbles_offset(type)));
    const __m256i low = low_bits(_mm256_set_m128i(_mm_srli_epi16(nibbles, 4), nibbles), 15);
    if constexpr (quant_format(type).bits == 4) return low;
    return either(low, fifth_bits(p + fifth_bits_offset(type)));
  }
}

// Eight rows in natural order to eight vectors of packed_format.hpp: dword r of v[j] is dword j of row r in storage order.
inline void transpose_rows(const __m256i* rows, __m256i* v) {
  const __m256i storage_order = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,  //
                                                 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  __m256i pairs[8], quads[8];
  for (int r = 0; r < 8; r += 2) {
    const auto in_order = [&](int i) { return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(rows[i], 0xd8), storage_order); };
    const __m256i a = in_order(r), b = in_order(r + 1);
    pairs[r] = _mm256_unpacklo_epi32(a, b);
    pairs[r + 1] = _mm256_unpackhi_epi32(a, b);
  }
  for (int r = 0; r < 8; r += 4)
    for (int i = 0; i < 2; ++i) {
      quads[r + 2 * i] = _mm256_unpacklo_epi64(pairs[r + i], pairs[r + i + 2]);
      quads[r + 2 * i + 1] = _mm256_unpackhi_epi64(pairs[r + i], pairs[r + i + 2]);
    }
  for (int j = 0; j < 4; ++j) {
    v[j] = _mm256_permute2x128_si256(quads[j], quads[j + 4], 0x20);
    v[j + 4] = _mm256_permute2x128_si256(quads[j], quads[j + 4], 0x31);
  }
}

// pack_lane for 32 lanes.
template <int bits>
inline void pack_planes(const __m256i* v, uint8_t* planes) {
  const auto put = [planes](int i, __m256i plane) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(planes + 64 * i), plane); };
  if constexpr (bits == 8) {
    for (int j = 0; j < 8; ++j) put(j, v[j]);
  } else if constexpr (bits == 6) {
    for (int h = 0; h < 2; ++h) {
      const __m256i* w = v + 4 * h;
      put(3 * h, either(w[0], up<6>(w[3], 0xc0)));
      put(3 * h + 1, either(w[1], up<4>(w[3], 0xc0)));
      put(3 * h + 2, either(w[2], up<2>(w[3], 0xc0)));
    }
  } else if constexpr (bits == 5) {
    put(0, either(v[0], up<5>(v[5], 0xe0)));
    put(1, either(v[1], up<5>(v[6], 0xe0)));
    put(2, either(v[2], up<5>(v[7], 0xe0)));
    put(3, either(either(v[3], up<2>(v[5], 0x60)), up<4>(v[7], 0x80)));
    put(4, either(either(v[4], up<2>(v[6], 0x60)), up<3>(v[7], 0x80)));
  } else if constexpr (bits == 4) {
    for (int j = 0; j < 4; ++j) put(j, either(v[j], up<4>(v[j + 4], 0xf0)));
  } else if constexpr (bits == 3) {
    put(0, either(either(v[0], up<3>(v[1], 0x38)), up<6>(v[6], 0xc0)));
    put(1, either(either(v[2], up<3>(v[3], 0x38)), either(up<4>(v[6], 0x40), up<7>(v[7], 0x80))));
    put(2, either(either(v[4], up<3>(v[5], 0x38)), up<5>(v[7], 0xc0)));
  } else {
    static_assert(bits == 2);
    for (int i = 0; i < 2; ++i)
      put(i, either(either(v[4 * i], up<2>(v[4 * i + 1], 0x0c)), either(up<4>(v[4 * i + 2], 0x30), up<6>(v[4 * i + 3], 0xc0))));
  }
}

template <WeightType type>
void pack_group(const uint8_t* first_row, size_t row_bytes, size_t n_blocks, uint8_t* group) {
  constexpr QuantFormat format = quant_format(type);
  const size_t ahead = kGroupRows * row_bytes;  // the next group
  for (size_t block = 0; block < n_blocks; ++block) {
    for (size_t at = ahead * block / n_blocks; at < ahead * (block + 1) / n_blocks; at += kLineBytes)
      _mm_prefetch(reinterpret_cast<const char*>(first_row + ahead + at), _MM_HINT_T0);
    const PackedBlock place = packed_block(format, block);
    for (size_t r = 0; r < kGroupRows; ++r) {
      RowBlock scales;
      read_row_scales<type>(first_row + r * row_bytes, block, &scales);
      store_row_scales<type>(scales, place, r, group);
    }
    for (size_t half = 0; half < 2; ++half) {
      __m256i rows[8], v[8];
      for (size_t r = 0; r < 8; ++r) rows[r] = row_values<type>(first_row + (8 * half + r) * row_bytes, block);
      transpose_rows(rows, v);
      pack_planes<format.bits>(v, group + place.planes + 32 * half);
    }
  }
}

}  // namespace

void pack_groups_avx2(WeightType type, const void* src, size_t rows, size_t cols, size_t group_begin, size_t group_end, void* packed) {
  const size_t row_bytes = gguf_row_bytes(type, cols), group_bytes = packed_group_bytes(type, cols);
  for (size_t g = group_begin; g < group_end; ++g) {
    uint8_t* group = static_cast<uint8_t*>(packed) + g * group_bytes;
    if (weight_type_is_float(type) || rows - g * kGroupRows < kGroupRows) {
      pack_groups(type, src, rows, cols, g, g + 1, packed);
      continue;
    }
    if (cols % 64 != 0) std::memset(group, 0, group_bytes);  // the scales of a block that is not there
    const uint8_t* first_row = static_cast<const uint8_t*>(src) + g * kGroupRows * row_bytes;
    with_quant_type(type, [&]<WeightType t>() { pack_group<t>(first_row, row_bytes, cols / kBlockCols, group); });
  }
}

}  // namespace minfer::cpu
