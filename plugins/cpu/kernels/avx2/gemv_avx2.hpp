// One token: the weights stream through once, straight from the packed form. Included by matmul_avx2.cpp only.
#pragma once

#include "kernels/avx2/unpack_avx2.hpp"

namespace minfer::cpu {
namespace {

// Hardware prefetch stops at page ends; every line is asked for this far ahead (measured: 2 to 4 KB are equal).
constexpr size_t kPrefetchBytes = 3072;

// acc and macc of 8 rows go on by one block.
template <WeightType type>
inline void gemv_half(const uint8_t* group, const PackedBlock& at, int half, const Q8Block& a, __m256* acc, __m256* macc) {
  constexpr QuantFormat format = quant_format(type);
  const uint8_t* planes = group + at.planes + 32 * half;
  __m256i v[8];
  unpack_half<format.bits>(planes, v);
  const auto activations = [&a](int j) { return broadcast32(a.q + 4 * j); };

  const SubScales sub = load_sub_scales<type>(group + at.sub_scales, half);
  const __m256i neg_sum16 = broadcast32(a.neg_sum16);
  __m256i isum;
  if constexpr (type == WeightType::kQ8_0) {
    isum = _mm256_setzero_si256();
    for (int j = 0; j < 8; ++j) {  // |w| <= 128, so a pair of products stays below 2^15
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(v[j]), _mm256_sign_epi8(activations(j), v[j]));
      isum = _mm256_add_epi32(isum, _mm256_madd_epi16(pairs, sub.scale));
    }
  } else if constexpr (type == WeightType::kQ6_K) {
    const __m256i neg_sum8 = broadcast32(a.neg_sum8);
    __m256i s0 = start_sum<type>(neg_sum8), s1 = start_sum<type>(_mm256_sub_epi16(neg_sum16, neg_sum8));
    for (int j = 0; j < 4; ++j) {
      s0 = _mm256_add_epi16(s0, _mm256_maddubs_epi16(v[j], activations(j)));
      s1 = _mm256_add_epi16(s1, _mm256_maddubs_epi16(v[j + 4], activations(j + 4)));
    }
    isum = _mm256_add_epi32(_mm256_madd_epi16(s0, sub.scale), _mm256_madd_epi16(s1, sub.scale));
  } else {
    const __m256i start = start_sum<type>(neg_sum16);
    __m256i s = start;
    for (int j = 0; j < 8; ++j) s = _mm256_add_epi16(s, _mm256_maddubs_epi16(v[j], activations(j)));
    isum = block_sum<type>(s, start, sub.scale);
  }
  const __m256 da = _mm256_set1_ps(a.d);
  *acc = _mm256_fmadd_ps(_mm256_mul_ps(load_half8(group + at.d + 16 * half), da), _mm256_cvtepi32_ps(isum), *acc);
  if constexpr (format.has_min) {
    const __m256 mw = _mm256_mul_ps(load_half8(group + at.m + 16 * half), da);
    if constexpr (format.is_k())
      *macc = _mm256_fnmadd_ps(mw, _mm256_cvtepi32_ps(_mm256_madd_epi16(sub.min, neg_sum16)), *macc);
    else
      *macc = _mm256_fmadd_ps(mw, _mm256_set1_ps(a.sum), *macc);
  }
}

// The end of a chain: mins, bias, and only the rows that exist.
template <WeightType type>
inline void finish_rows(const MatmulArgs& args, size_t row, size_t token, const __m256* acc, const __m256* macc) {
  constexpr QuantFormat format = quant_format(type);
  alignas(32) float values[16];
  for (int h = 0; h < 2; ++h) {
    __m256 value = acc[h];
    if constexpr (format.has_min) value = format.is_k() ? _mm256_sub_ps(value, macc[h]) : _mm256_add_ps(value, macc[h]);
    _mm256_store_ps(values + 8 * h, value);
  }
  float* out = args.out + token * args.out_stride + row;
  const size_t n = args.rows - row < 16 ? args.rows - row : 16;
  if (n == 16 && !args.bias) {
    std::memcpy(out, values, sizeof values);
    return;
  }
  for (size_t r = 0; r < n; ++r) out[r] = args.bias ? values[r] + args.bias[row + r] : values[r];
}

template <WeightType type>
void gemv(const MatmulArgs& args) {
  constexpr QuantFormat format = quant_format(type);
  const size_t n_blocks = args.cols / kBlockCols;
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  for (size_t g = args.group_begin; g < args.group_end; ++g) {
    const uint8_t* group = static_cast<const uint8_t*>(args.weights) + g * group_bytes;
    __m256 acc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, macc[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (size_t b = 0; b < n_blocks; ++b) {
      const PackedBlock at = packed_block(format, b);
      for (size_t line = 0; line < format.plane_bytes() + kLineBytes; line += kLineBytes)
        _mm_prefetch(reinterpret_cast<const char*>(group + at.planes + kPrefetchBytes + line), _MM_HINT_T0);
      for (int half = 0; half < 2; ++half) gemv_half<type>(group, at, half, args.q8[b], &acc[half], &macc[half]);
    }
    finish_rows<type>(args, g * 16, 0, acc, macc);
  }
}

}  // namespace
}  // namespace minfer::cpu
