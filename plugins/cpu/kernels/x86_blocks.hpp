// What the x86 kernels of both vector widths share: how packed planes come apart, how the integer part of a type is computed with
// 16-bit sums, and how far ahead weights are asked for. Included by files in avx2/ and avx512/ only; anonymous namespace: each file
// keeps its own copy, compiled for its own instruction set.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/matmul.hpp"
#include "kernels/packed_format.hpp"

namespace minfer::cpu {
namespace {

// Sums of byte products in 16 bits (products of unsigned stored values and signed activations, `maddubs`). Partial sums may wrap
// around, the final one fits: 16 products of 8 * 127 (4 bits with offset), 15 * 127 (4 bits without), or 16 * 127 (5 bits with offset);
// 8 products of 31 * 127 (5 bits without offset) or 32 * 127 (6 bits).
// The sums of a type with an offset begin at -(offset * sum of a), so that they are those of (stored - offset) * a.
constexpr int sum_parts(WeightType type) {
  return type == WeightType::kQ5_1 || type == WeightType::kQ5_K || type == WeightType::kQ6_K ? 2 : 1;
}
constexpr bool has_start(WeightType type) { return quant_format(type).offset != 0; }
// log2 of 16 / offset: the types whose sums have one part begin at Q8Block::start5 shifted down by this.
constexpr int start_shift(WeightType type) {
  switch (quant_format(type).offset) {
    case 4: return 2;
    case 8: return 1;
    default: return 0;
  }
}

// Hardware prefetch stops at page ends, so every line is asked for ahead of its use. Measured on Zen 3 with one thread and one stream:
// 2 to 6 KB are equal and 40 % faster than none; Q8_0, which needs the least arithmetic per byte, does best with 1 KB.
constexpr size_t prefetch_bytes(WeightType type) { return type == WeightType::kQ8_0 ? 1024 : 2048; }

// Asks for as many lines as the block at `planes` has, `ahead` bytes behind it; 0: for none. (Asking for some of the lines only is much
// slower than for none: it misleads the hardware.)
template <WeightType type, size_t ahead = prefetch_bytes(type)>
inline void prefetch_block(const uint8_t* planes) {
  if constexpr (ahead == 0) return;
  for (size_t line = 0; line < quant_format(type).plane_bytes() + kLineBytes; line += kLineBytes)
    _mm_prefetch(reinterpret_cast<const char*>(planes + ahead + line), _MM_HINT_T0);
}

// The sums of a block of activations whose d is set. first, second: sums of the two halves of its q in storage order, in the lowest dword
// those of columns 0..15 and 16..31 side by side.
inline void store_sums(__m128i first, __m128i second, Q8Block* out) {
  const auto store = [](int16_t* to, __m128i sum, int16_t factor) {
    const int pair = _mm_cvtsi128_si32(_mm_mullo_epi16(sum, _mm_set1_epi16(factor)));
    std::memcpy(to, &pair, sizeof pair);
  };
  const __m128i all = _mm_add_epi16(first, second);
  store(out->start6[0], first, -32);
  store(out->start6[1], second, -32);
  store(out->start5, all, -16);
  out->scaled_sum = out->d * static_cast<float>(_mm_cvtsi128_si32(_mm_madd_epi16(all, _mm_set1_epi16(1))));
}

inline int load_dword(const void* p) {
  int value;
  std::memcpy(&value, p, 4);
  return value;
}

// The eight vectors of a block from its planes. Ops is a register width: Int, load, low(b, mask) = b & mask, either(a, b) = a | b, and
// field<shift>(b, mask) = bits moved down with those of the neighbour byte masked away. A narrower register than a line takes
// the bytes at `planes` of each line.
template <class Ops, int bits>
inline void unpack_planes(const uint8_t* planes, typename Ops::Int* v) {
  using Int = typename Ops::Int;
  const auto plane = [planes](size_t i) { return Ops::load(planes + kLineBytes * i); };
  const auto low = [](Int b, int mask) { return Ops::low(b, mask); };
  const auto either = [](Int a, Int b) { return Ops::either(a, b); };
  if constexpr (bits == 8) {
    for (size_t j = 0; j < 8; ++j) v[j] = plane(j);
  } else if constexpr (bits == 6) {
    for (size_t h = 0; h < 2; ++h) {
      const Int b0 = plane(3 * h), b1 = plane(3 * h + 1), b2 = plane(3 * h + 2);
      v[4 * h] = low(b0, 63);
      v[4 * h + 1] = low(b1, 63);
      v[4 * h + 2] = low(b2, 63);
      v[4 * h + 3] = either(either(Ops::template field<6>(b0, 3), Ops::template field<4>(b1, 12)), Ops::template field<2>(b2, 48));
    }
  } else if constexpr (bits == 5) {
    const Int b0 = plane(0), b1 = plane(1), b2 = plane(2), b3 = plane(3), b4 = plane(4);
    v[0] = low(b0, 31);
    v[1] = low(b1, 31);
    v[2] = low(b2, 31);
    v[3] = low(b3, 31);
    v[4] = low(b4, 31);
    v[5] = either(Ops::template field<5>(b0, 7), Ops::template field<2>(b3, 24));
    v[6] = either(Ops::template field<5>(b1, 7), Ops::template field<2>(b4, 24));
    v[7] = either(either(Ops::template field<5>(b2, 7), Ops::template field<4>(b3, 8)), Ops::template field<3>(b4, 16));
  } else if constexpr (bits == 4) {
    for (size_t j = 0; j < 4; ++j) {
      const Int b = plane(j);
      v[j] = low(b, 15);
      v[j + 4] = Ops::template field<4>(b, 15);
    }
  } else if constexpr (bits == 3) {
    const Int b0 = plane(0), b1 = plane(1), b2 = plane(2);
    v[0] = low(b0, 7);
    v[1] = Ops::template field<3>(b0, 7);
    v[2] = low(b1, 7);
    v[3] = Ops::template field<3>(b1, 7);
    v[4] = low(b2, 7);
    v[5] = Ops::template field<3>(b2, 7);
    v[6] = either(Ops::template field<6>(b0, 3), Ops::template field<4>(b1, 4));
    v[7] = either(Ops::template field<7>(b1, 1), Ops::template field<5>(b2, 6));
  } else {
    static_assert(bits == 2);
    for (size_t i = 0; i < 2; ++i) {
      const Int b = plane(i);
      v[4 * i] = low(b, 3);
      v[4 * i + 1] = Ops::template field<2>(b, 3);
      v[4 * i + 2] = Ops::template field<4>(b, 3);
      v[4 * i + 3] = Ops::template field<6>(b, 3);
    }
  }
}

}  // namespace
}  // namespace minfer::cpu
