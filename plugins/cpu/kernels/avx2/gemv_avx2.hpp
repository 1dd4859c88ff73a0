// One token or a few: the weights stream through once, straight from the packed form. Included by matmul_avx2.cpp only.
#pragma once

#include "kernels/avx2/unpack_avx2.hpp"

namespace minfer::cpu {
namespace {

// One block of 8 rows in registers. d, m: types of 32 columns; K types have them per 256 columns.
template <WeightType type>
struct HalfBlock {
  __m256i v[8];
  __m256i scale, min_pairs;
  __m256 d, m, min;
};

template <WeightType type>
inline HalfBlock<type> load_half_block(const uint8_t* group, const PackedBlock& at, size_t half) {
  constexpr QuantFormat format = quant_format(type);
  HalfBlock<type> out;
  unpack_half<format.bits>(group + at.planes + 32 * half, out.v);
  const uint8_t* sub = group + at.sub_scales;
  out.scale = load_sub_scales<type>(sub, half);
  if constexpr (type == WeightType::kQ2_K) {
    out.min_pairs = load_min_pairs(sub, half);
  } else if constexpr (format.is_k()) {
    if constexpr (format.has_min) out.min = load_mins(sub, half);
  } else {
    out.d = load_half8(group + at.d + 16 * half);
    if constexpr (format.has_min) out.m = load_half8(group + at.m + 16 * half);
  }
  return out;
}

// The chains of 8 rows (baseline/matmul_baseline.cpp) go on by one block.
template <WeightType type>
inline void accumulate(const HalfBlock<type>& w, const Q8Block& a, __m256* acc, __m256* scaled, __m256* mins) {
  constexpr QuantFormat format = quant_format(type);
  const auto activations = [&a](int j) { return broadcast32(a.q + 4 * j); };
  __m256i isum = _mm256_setzero_si256();
  if constexpr (type == WeightType::kQ8_0) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {  // |w| <= 128, so a pair of products stays below 2^15
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w.v[j]), _mm256_sign_epi8(activations(j), w.v[j]));
      isum = add32(isum, _mm256_madd_epi16(pairs, w.scale));
    }
  } else {
    constexpr int parts = sum_parts(type), vectors = 8 / parts;
    __m256i s[parts];
#pragma GCC unroll 2
    for (int part = 0; part < parts; ++part) {
      const __m256i first = _mm256_maddubs_epi16(w.v[vectors * part], activations(vectors * part));
      s[part] = has_start(type) ? add16(start_sum<type>(a, part), first) : first;
    }
#pragma GCC unroll 8
    for (int j = 1; j < vectors; ++j)
#pragma GCC unroll 2
      for (int part = 0; part < parts; ++part) {
        const int v = vectors * part + j;
        s[part] = add16(s[part], _mm256_maddubs_epi16(w.v[v], activations(v)));
      }
    isum = _mm256_madd_epi16(s[0], w.scale);
    if constexpr (parts == 2) isum = _mm256_add_epi32(isum, _mm256_madd_epi16(s[1], w.scale));
  }
  const __m256 da = _mm256_set1_ps(a.d);
  const __m256 block_sum = _mm256_cvtepi32_ps(isum);
  if constexpr (format.is_k()) {
    *scaled = _mm256_fmadd_ps(da, block_sum, *scaled);
    if constexpr (type == WeightType::kQ2_K)
      *mins = _mm256_fnmadd_ps(da, _mm256_cvtepi32_ps(_mm256_madd_epi16(w.min_pairs, neg_sums(a))), *mins);
    else if constexpr (format.has_min)
      *mins = _mm256_fmadd_ps(w.min, _mm256_set1_ps(a.scaled_sum), *mins);
  } else {
    *acc = _mm256_fmadd_ps(_mm256_mul_ps(w.d, da), block_sum, *acc);
    if constexpr (format.has_min) *acc = _mm256_fmadd_ps(w.m, _mm256_set1_ps(a.scaled_sum), *acc);
  }
}

// The end of 256 columns of a K type.
template <WeightType type>
inline void end_super_block(const uint8_t* group, const PackedBlock& at, size_t half, __m256* acc, __m256* scaled, __m256* mins) {
  *acc = _mm256_fmadd_ps(load_half8(group + at.d + 16 * half), *scaled, *acc);
  *scaled = _mm256_setzero_ps();
  if constexpr (quant_format(type).has_min) {
    *acc = _mm256_fnmadd_ps(load_half8(group + at.m + 16 * half), *mins, *acc);
    *mins = _mm256_setzero_ps();
  }
}

// The end of a row: bias, and only the rows that exist.
inline void finish_rows(const MatmulArgs& args, size_t row, size_t token, __m256 low, __m256 high) {
  alignas(32) float values[16];
  _mm256_store_ps(values, low);
  _mm256_store_ps(values + 8, high);
  float* out = args.out + token * args.out_stride + row;
  const size_t n = args.rows - row < 16 ? args.rows - row : 16;
  if (n == 16 && !args.bias) {
    std::memcpy(out, values, sizeof values);
    return;
  }
  for (size_t r = 0; r < n; ++r) out[r] = args.bias ? values[r] + args.bias[row + r] : values[r];
}

constexpr size_t kFewTokens = 8;

// One token is multiplied with this many groups side by side, one of each quarter of the range: memory gives more to several streams
// of reads than to one. Measured on Zen 3 with two threads, steps of one run in turns: 4 streams are 5 to 25 % faster than 1, 3 are equal,
// 6 no faster, 8 slower, and so are 4 groups that are neighbours (Q8_0). 512 to 1024 bytes ahead are equal; Q8_0, which needs the
// least arithmetic per byte, does best when prefetch is left to the hardware. With 2, 4 and 8 tokens one stream is faster.
constexpr size_t kStreams = 4;
constexpr size_t stream_prefetch_bytes(WeightType type) { return type == WeightType::kQ8_0 ? 0 : 1024; }

// Groups first, first + stride, ...: `groups` of them. n_tokens is a template argument for one token, whose loops then unroll; 0:
// args.n_tokens, up to kFewTokens.
template <WeightType type, size_t groups, size_t tokens>
void gemv_groups(const MatmulArgs& args, size_t first, size_t stride) {
  constexpr QuantFormat format = quant_format(type);
  constexpr size_t kMaxTokens = tokens ? tokens : kFewTokens;
  const size_t n_tokens = tokens ? tokens : args.n_tokens;
  const size_t n_blocks = args.cols / kBlockCols;
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  const uint8_t* weights = static_cast<const uint8_t*>(args.weights) + first * group_bytes;
  const size_t step = stride * group_bytes;
  __m256 acc[groups][kMaxTokens][2], scaled[groups][kMaxTokens][2], mins[groups][kMaxTokens][2];
  for (size_t i = 0; i < groups; ++i)
    for (size_t c = 0; c < n_tokens; ++c)
      for (size_t half = 0; half < 2; ++half) acc[i][c][half] = scaled[i][c][half] = mins[i][c][half] = _mm256_setzero_ps();
  for (size_t slab = 0; slab < n_blocks; slab += kSlabBlocks) {
    const size_t width = n_blocks - slab < kSlabBlocks ? n_blocks - slab : kSlabBlocks;
    const Q8Block* a = args.q8 + slab * n_tokens;
    for (size_t b = 0; b < width; ++b) {
      const PackedBlock at = packed_block(format, slab + b);
#pragma GCC unroll 4
      for (size_t i = 0; i < groups; ++i) {
        const uint8_t* group = weights + i * step;
        prefetch_block<type, groups == 1 ? prefetch_bytes(type) : stream_prefetch_bytes(type)>(group + at.planes);
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; ++half) {
          const HalfBlock<type> w = load_half_block<type>(group, at, half);
          for (size_t c = 0; c < n_tokens; ++c)
            accumulate<type>(w, a[c * width + b], &acc[i][c][half], &scaled[i][c][half], &mins[i][c][half]);
          if constexpr (format.is_k())
            if (b % 8 == 7)
              for (size_t c = 0; c < n_tokens; ++c)
                end_super_block<type>(group, at, half, &acc[i][c][half], &scaled[i][c][half], &mins[i][c][half]);
        }
      }
    }
  }
  for (size_t i = 0; i < groups; ++i)
    for (size_t c = 0; c < n_tokens; ++c) finish_rows(args, (first + i * stride) * 16, c, acc[i][c][0], acc[i][c][1]);
}

template <WeightType type>
void gemv_one(const MatmulArgs& args) {
  const size_t run = (args.group_end - args.group_begin) / kStreams;
  for (size_t g = 0; g < run; ++g) gemv_groups<type, kStreams, 1>(args, args.group_begin + g, run);
  for (size_t g = args.group_begin + kStreams * run; g < args.group_end; ++g) gemv_groups<type, 1, 1>(args, g, 0);
}

template <WeightType type>
void gemv_few(const MatmulArgs& args) {
  for (size_t g = args.group_begin; g < args.group_end; ++g) gemv_groups<type, 1, 0>(args, g, 0);
}

}  // namespace
}  // namespace minfer::cpu
