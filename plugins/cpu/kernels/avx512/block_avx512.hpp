// One packed block of 16 rows in registers (a plane line is a register, a lane a row) and its product with blocks of activations.
// Included by the files of avx512/ only. `vnni`: the CPU also has the instructions of AVX-512 VNNI.
#pragma once

#include <immintrin.h>

#include "kernels/matmul.hpp"
#include "kernels/x86_blocks.hpp"

namespace minfer::cpu {
namespace {

inline __m512i load512(const void* p) { return _mm512_loadu_si512(p); }
inline __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline __m512i broadcast32(const void* p) { return _mm512_set1_epi32(load_dword(p)); }
inline __m512 load_half16(const uint8_t* p) { return _mm512_cvtph_ps(load256(p)); }

// sum + product. The empty statement hides the sum from the compiler, which otherwise turns the chain of additions into a
// tree whose parts do not fit the registers.
inline __m512i in_order(__m512i sum) {
#if defined(__AVX512F__)
  __asm__("" : "+v"(sum));
#endif
  return sum;
}
inline __m512i add16(__m512i sum, __m512i product) { return in_order(_mm512_add_epi16(sum, product)); }
inline __m512i add32(__m512i sum, __m512i product) { return in_order(_mm512_add_epi32(sum, product)); }

// sum + the two products of 16-bit halves, per lane.
template <bool vnni>
inline __m512i add_dot2(__m512i sum, __m512i a, __m512i b) {
  if constexpr (vnni) return _mm512_dpwssd_epi32(sum, a, b);
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}

struct Zmm {
  using Int = __m512i;
  static Int load(const uint8_t* p) { return load512(p); }
  static Int low(Int b, int mask) { return _mm512_and_si512(b, _mm512_set1_epi8(static_cast<char>(mask))); }
  static Int either(Int a, Int b) { return _mm512_or_si512(a, b); }
  template <int shift>
  static Int field(Int b, int mask) {
    return low(_mm512_srli_epi16(b, shift), mask);
  }
};

// Two sub-scales in a block: they belong to the two 16-bit halves of a lane, which a dot product of four bytes would mix.
constexpr bool two_scales(WeightType type) { return type == WeightType::kQ2_K || type == WeightType::kQ3_K || type == WeightType::kQ6_K; }

// The integer part comes from dot products of four unsigned stored bytes and four signed activations, summed in 32 bits.
constexpr bool byte_dots(WeightType type, bool vnni) { return vnni && !two_scales(type); }
// What the bytes of such a product have more than the weights: Q8_0 is stored signed, 128 makes it unsigned.
constexpr int16_t byte_offset(WeightType type) {
  return type == WeightType::kQ8_0 ? int16_t{128} : static_cast<int16_t>(quant_format(type).offset);
}

// Fields that a type has no use for stay unset.
struct Block {
  __m512i q[8];             // stored values; Q8_0: w + 128 for byte_dots, else |w|
  __mmask64 negative[8];    // Q8_0 without byte_dots: the signs
  __m512i scale16, min16;   // sub-scales and sub-mins, two per lane
  __m512 scale, min, d, m;  // one per lane, exact; d and m of a K type: in the last block of 256 columns
};

template <WeightType type, bool vnni>
inline void load_block(const uint8_t* group, size_t block, Block* out) {
  constexpr QuantFormat format = quant_format(type);
  const PackedBlock at = packed_block(format, block);
  prefetch_block<type>(group + at.planes);
  unpack_planes<Zmm, format.bits>(group + at.planes, out->q);
  if constexpr (type == WeightType::kQ8_0) {
    for (int j = 0; j < 8; ++j) {
      if constexpr (vnni) {
        out->q[j] = _mm512_xor_si512(out->q[j], _mm512_set1_epi8(-128));
      } else {
        out->negative[j] = _mm512_movepi8_mask(out->q[j]);
        out->q[j] = _mm512_abs_epi8(out->q[j]);
      }
    }
  }
  if (!format.is_k() || block % 8 == 7) {  // a K type's are applied at the end of its 256 columns
    out->d = load_half16(group + at.d);
    if constexpr (format.has_min) out->m = load_half16(group + at.m);
  }
  const uint8_t* sub = group + at.sub_scales;
  if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) {
    const __m512i scale = _mm512_cvtepu8_epi32(load128(sub));
    out->scale = _mm512_cvtepi32_ps(scale);
    out->scale16 = _mm512_or_si512(scale, _mm512_slli_epi32(scale, 16));
    out->min = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load128(sub + 16)));
  } else if constexpr (type == WeightType::kQ2_K) {
    const __m512i both = _mm512_cvtepu8_epi16(load256(sub));
    out->scale16 = _mm512_and_si512(both, _mm512_set1_epi16(15));
    out->min16 = _mm512_srli_epi16(both, 4);
  } else if constexpr (two_scales(type)) {
    out->scale16 = _mm512_cvtepi8_epi16(load256(sub));
  } else {
    out->scale16 = _mm512_set1_epi16(1);
  }
}

// Where the 16-bit sums of a part of the columns begin, for types with has_start.
template <WeightType type>
inline __m512i start_sum(const Q8Block& a, int part) {
  if constexpr (sum_parts(type) == 2) return broadcast32(a.start6[part]);
  return _mm512_srai_epi16(broadcast32(a.start5), start_shift(type));
}

// Two 16-bit values per lane: -(sum of a) over both halves of 16 columns.
inline __m512i neg_sums(const Q8Block& a) { return _mm512_srai_epi16(broadcast32(a.start5), 4); }

// isum[c] = the integer part of this block times a[c * stride], without the sub-scale where byte_dots leaves it to the float part.
template <WeightType type, bool vnni, int n>
inline void integer_part(const Block& w, const Q8Block* a, size_t stride, __m512i* isum) {
  const auto token = [a, stride](int c) -> const Q8Block& { return a[static_cast<size_t>(c) * stride]; };
  if constexpr (byte_dots(type, vnni)) {
#pragma GCC unroll 16
    for (int c = 0; c < n; ++c) {  // the sums begin at -(offset * sum of a)
      isum[c] = _mm512_setzero_si512();
      if constexpr (byte_offset(type) != 0)
        isum[c] = _mm512_dpwssd_epi32(isum[c], _mm512_set1_epi16(byte_offset(type)), neg_sums(token(c)));
    }
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j)
#pragma GCC unroll 16
      for (int c = 0; c < n; ++c) isum[c] = _mm512_dpbusd_epi32(isum[c], w.q[j], broadcast32(token(c).q + 4 * j));
  } else if constexpr (type == WeightType::kQ8_0) {
    for (int c = 0; c < n; ++c) isum[c] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j)
#pragma GCC unroll 16
      for (int c = 0; c < n; ++c) {  // |w| <= 128, so a pair of products stays below 2^15
        const __m512i x = broadcast32(token(c).q + 4 * j);
        const __m512i signed_x = _mm512_mask_sub_epi8(x, w.negative[j], _mm512_setzero_si512(), x);
        isum[c] = add32(isum[c], _mm512_madd_epi16(_mm512_maddubs_epi16(w.q[j], signed_x), w.scale16));
      }
  } else {
    constexpr int parts = sum_parts(type), vectors = 8 / parts;
#pragma GCC unroll 2
    for (int part = 0; part < parts; ++part) {
      __m512i s[n];
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j)
#pragma GCC unroll 16
        for (int c = 0; c < n; ++c) {
          const int v = vectors * part + j;
          const __m512i product = _mm512_maddubs_epi16(w.q[v], broadcast32(token(c).q + 4 * v));
          if (j > 0)
            s[c] = add16(s[c], product);
          else
            s[c] = has_start(type) ? add16(start_sum<type>(token(c), part), product) : product;
        }
#pragma GCC unroll 16
      for (int c = 0; c < n; ++c) isum[c] = add_dot2<vnni>(part == 0 ? _mm512_setzero_si512() : isum[c], s[c], w.scale16);
    }
  }
}

// The running sums of 16 rows (baseline/matmul_baseline.cpp).
struct Chains {
  __m512 acc;
  __m512 scaled, mins;  // K types: of the 256 columns at hand
};

// The chains of n tokens go on by one block. The activations of token c are a[c * stride].
template <WeightType type, bool vnni, int n>
inline void accumulate(const Block& w, const Q8Block* a, size_t stride, Chains* chains) {
  constexpr QuantFormat format = quant_format(type);
  __m512i isum[n];
  integer_part<type, vnni, n>(w, a, stride, isum);
#pragma GCC unroll 16
  for (int c = 0; c < n; ++c) {
    const Q8Block& block = a[static_cast<size_t>(c) * stride];
    const __m512 da = _mm512_set1_ps(block.d);
    // Integers below 2^24, and so are their products with sub-scales: exact as floats.
    __m512 value = _mm512_cvtepi32_ps(isum[c]);
    if constexpr (format.is_k()) {
      if constexpr (byte_dots(type, vnni)) value = _mm512_mul_ps(value, w.scale);
      chains[c].scaled = _mm512_fmadd_ps(da, value, chains[c].scaled);
      if constexpr (type == WeightType::kQ2_K)
        chains[c].mins = _mm512_fnmadd_ps(da, _mm512_cvtepi32_ps(_mm512_madd_epi16(w.min16, neg_sums(block))), chains[c].mins);
      else if constexpr (format.has_min)
        chains[c].mins = _mm512_fmadd_ps(w.min, _mm512_set1_ps(block.scaled_sum), chains[c].mins);
    } else {
      chains[c].acc = _mm512_fmadd_ps(_mm512_mul_ps(w.d, da), value, chains[c].acc);
      if constexpr (format.has_min) chains[c].acc = _mm512_fmadd_ps(w.m, _mm512_set1_ps(block.scaled_sum), chains[c].acc);
    }
  }
}

// Block `block` is done; at the end of 256 columns of a K type its scales are applied.
template <WeightType type>
inline void end_block(const Block& w, size_t block, size_t n_tokens, Chains* chains) {
  constexpr QuantFormat format = quant_format(type);
  if constexpr (format.is_k()) {
    if (block % 8 < 7) return;
#pragma GCC unroll 16
    for (size_t c = 0; c < n_tokens; ++c) {
      chains[c].acc = _mm512_fmadd_ps(w.d, chains[c].scaled, chains[c].acc);
      if constexpr (format.has_min) chains[c].acc = _mm512_fnmadd_ps(w.m, chains[c].mins, chains[c].acc);
      chains[c].scaled = chains[c].mins = _mm512_setzero_ps();
    }
  }
}

// The first n lanes.
inline __mmask16 first_lanes(size_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1); }

// The end of a row: bias, and only the rows that exist.
inline void finish_rows(const MatmulArgs& args, size_t row, size_t token, __m512 acc) {
  const __mmask16 rows = first_lanes(args.rows - row);
  if (args.bias) acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps(rows, args.bias + row));
  _mm512_mask_storeu_ps(args.out + token * args.out_stride + row, rows, acc);
}

}  // namespace
}  // namespace minfer::cpu
