// The definition of quantisation and matrix products. Every other kernel gives the same bits.
//
//   isum   = sum over 32 columns of scale * q * a         exact in int32, |isum| < 2^24; scale = 1 where the type has none
//   types of 32 columns, blocks ascending, from +0:
//     acc    = fma(f32(d) * da, f32(isum), acc), then for Q4_1 and Q5_1 acc = fma(f32(m), da * (sum of a), acc)
//   K types, per 256 columns, from +0 over their blocks ascending:
//     scaled = fma(da, f32(isum), scaled)
//     mins   = fma(f32(min), da * (sum of a), mins), Q2_K: fma(da, f32(sum of min * a), mins)
//     then acc = fma(f32(d), scaled, acc), and for types with a min acc = fma(-f32(dmin), mins, acc)
//   out    = acc + bias
//   F32, F16, BF16: acc = fma(w, x, acc), columns ascending
// Activations beyond about 1e33 may overflow although a small d follows: the result is not finite then, and whoever reads it says so.
#include <cmath>
#include <cstring>

#include "kernels/float16.hpp"
#include "kernels/matmul_tables.hpp"
#include "kernels/packed_format.hpp"

namespace minfer::cpu {
namespace {

bool quantize_block(const float* x, Q8Block* out) {
  float amax = 0;
  bool finite = true;
  for (int k = 0; k < 32; ++k) {
    const float magnitude = std::fabs(x[k]);
    finite &= magnitude <= 0x1.fffffep127f;  // false for NaN too
    if (magnitude > amax) amax = magnitude;
  }
  if (!finite) return false;
  std::memset(out, 0, sizeof *out);
  if (amax < 0x1p-100f) return true;
  const float id = 127.0f / amax;
  out->d = amax / 127.0f;
  int sums[4] = {};  // of 8 columns
  for (size_t p = 0; p < 32; ++p) {
    const size_t k = storage_column(p);
    // |x * id| < 2^22: adding 1.5 * 2^23 leaves the nearest integer, ties to even, in the low mantissa bits.
    const float shifted = x[k] * id + 0x1.8p23f;
    const int q = static_cast<int>(shifted - 0x1.8p23f);
    out->q[p] = static_cast<int8_t>(q);
    sums[k / 8] += q;
  }
  out->scaled_sum = out->d * static_cast<float>(sums[0] + sums[1] + sums[2] + sums[3]);
  for (int s = 0; s < 2; ++s) {
    out->start5[s] = static_cast<int16_t>(-16 * (sums[2 * s] + sums[2 * s + 1]));
    for (int part = 0; part < 2; ++part) out->start6[part][s] = static_cast<int16_t>(-32 * sums[2 * s + part]);
  }
  return true;
}

bool quantize(const QuantizeArgs& args) {
  const size_t n_blocks = args.cols / 32;
  for (size_t token = args.token_begin; token < args.token_end; ++token)
    for (size_t b = args.block_begin; b < args.block_end; ++b)
      if (!quantize_block(args.x + token * args.x_stride + b * 32, args.out + q8_index(n_blocks, args.n_tokens, token, b))) return false;
  return true;
}

// 32 columns of 16 rows, the integer sub-scales multiplied in.
struct WeightBlock {
  int16_t w[16][32];   // scale * (q - offset), columns in storage order
  int16_t min[16][2];  // of each 16 columns
  float d[16], m[16];
};

uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <WeightType type>
void read_weights(const uint8_t* group, size_t block, WeightBlock* out) {
  constexpr QuantFormat format = quant_format(type);
  const PackedBlock at = packed_block(format, block);
  alignas(64) uint8_t v[8][64];
  for (size_t lane = 0; lane < 64; ++lane) unpack_lane<format.bits>(group + at.planes + lane, &v[0][lane]);
  for (size_t r = 0; r < 16; ++r) {
    int scale[2] = {1, 1}, min[2] = {1, 1};
    const uint8_t* sub = group + at.sub_scales;
    for (size_t s = 0; s < 2 && format.is_k(); ++s) {
      if constexpr (type == WeightType::kQ4_K || type == WeightType::kQ5_K) {
        scale[s] = sub[r];
        min[s] = sub[16 + r];
      } else if constexpr (type == WeightType::kQ2_K) {
        scale[s] = sub[2 * r + s] & 15;
        min[s] = sub[2 * r + s] >> 4;
      } else {
        scale[s] = static_cast<int8_t>(sub[2 * r + s]);
      }
    }
    for (size_t p = 0; p < 32; ++p) {
      const uint8_t stored = v[p / 4][4 * r + p % 4];
      const int q = type == WeightType::kQ8_0 ? static_cast<int8_t>(stored) : stored - format.offset;
      out->w[r][p] = static_cast<int16_t>(scale[p / 2 % 2] * q);
    }
    for (int s = 0; s < 2; ++s) out->min[r][s] = static_cast<int16_t>(min[s]);
    out->d[r] = f16_to_f32(load_u16(group + at.d + 2 * r));
    out->m[r] = format.has_min ? f16_to_f32(load_u16(group + at.m + 2 * r)) : 0.0f;
  }
}

constexpr size_t kTokensAtOnce = 32;  // share the unpacking of a block

void store(const MatmulArgs& args, size_t token, size_t row, float value) {
  args.out[token * args.out_stride + row] = args.bias ? value + args.bias[row] : value;
}

struct Chains {
  float acc, scaled, mins;
};

template <WeightType type>
void add_block(const WeightBlock& w, size_t r, const Q8Block& a, int isum, Chains* chains) {
  constexpr QuantFormat format = quant_format(type);
  if constexpr (!format.is_k()) {
    chains->acc = std::fma(w.d[r] * a.d, static_cast<float>(isum), chains->acc);
    if constexpr (format.has_min) chains->acc = std::fma(w.m[r], a.scaled_sum, chains->acc);
    return;
  }
  chains->scaled = std::fma(a.d, static_cast<float>(isum), chains->scaled);
  if constexpr (type == WeightType::kQ2_K) {
    const int sum16[2] = {a.start5[0] / -16, a.start5[1] / -16};  // exact
    chains->mins = std::fma(a.d, static_cast<float>(w.min[r][0] * sum16[0] + w.min[r][1] * sum16[1]), chains->mins);
  }
  if constexpr (format.has_min && type != WeightType::kQ2_K)
    chains->mins = std::fma(static_cast<float>(w.min[r][0]), a.scaled_sum, chains->mins);
}

template <WeightType type>
void end_super_block(const WeightBlock& w, size_t r, Chains* chains) {
  chains->acc = std::fma(w.d[r], chains->scaled, chains->acc);
  if constexpr (quant_format(type).has_min) chains->acc = std::fma(-w.m[r], chains->mins, chains->acc);
  chains->scaled = chains->mins = 0;
}

template <WeightType type>
void matmul_quantised(const MatmulArgs& args) {
  constexpr QuantFormat format = quant_format(type);
  const size_t n_blocks = args.cols / kBlockCols, group_bytes = packed_group_bytes(type, args.cols);
  for (size_t g = args.group_begin; g < args.group_end; ++g) {
    const uint8_t* group = static_cast<const uint8_t*>(args.weights) + g * group_bytes;
    const size_t n_rows = args.rows - g * 16 < 16 ? args.rows - g * 16 : 16;
    for (size_t first = 0; first < args.n_tokens; first += kTokensAtOnce) {
      const size_t n = args.n_tokens - first < kTokensAtOnce ? args.n_tokens - first : kTokensAtOnce;
      Chains chains[kTokensAtOnce][16] = {};
      for (size_t b = 0; b < n_blocks; ++b) {
        WeightBlock block;
        read_weights<type>(group, b, &block);
        for (size_t t = 0; t < n; ++t) {
          const Q8Block& a = args.q8[q8_index(n_blocks, args.n_tokens, first + t, b)];
          for (size_t r = 0; r < n_rows; ++r) {
            int isum = 0;
            for (int p = 0; p < 32; ++p) isum += block.w[r][p] * a.q[p];
            add_block<type>(block, r, a, isum, &chains[t][r]);
            if (format.is_k() && b % 8 == 7) end_super_block<type>(block, r, &chains[t][r]);
          }
        }
      }
      for (size_t t = 0; t < n; ++t)
        for (size_t r = 0; r < n_rows; ++r) store(args, first + t, g * 16 + r, chains[t][r].acc);
    }
  }
}

template <WeightType type>
float load_weight(const uint8_t* group, size_t i) {
  if constexpr (type == WeightType::kF16) return f16_to_f32(load_u16(group + 2 * i));
  if constexpr (type == WeightType::kBF16) return bf16_to_f32(load_u16(group + 2 * i));
  float value;
  std::memcpy(&value, group + 4 * i, sizeof value);
  return value;
}

template <WeightType type>
void matmul_float(const MatmulArgs& args) {
  const size_t group_bytes = packed_group_bytes(type, args.cols);
  for (size_t g = args.group_begin; g < args.group_end; ++g) {
    const uint8_t* group = static_cast<const uint8_t*>(args.weights) + g * group_bytes;
    const size_t n_rows = args.rows - g * 16 < 16 ? args.rows - g * 16 : 16;
    for (size_t first = 0; first < args.n_tokens; first += kTokensAtOnce) {
      const size_t n = args.n_tokens - first < kTokensAtOnce ? args.n_tokens - first : kTokensAtOnce;
      float acc[kTokensAtOnce][16] = {};
      for (size_t k = 0; k < args.cols; ++k) {
        float w[16];
        for (size_t r = 0; r < 16; ++r) w[r] = load_weight<type>(group, k * 16 + r);
        for (size_t t = 0; t < n; ++t) {
          const float x = args.x[(first + t) * args.x_stride + k];
          for (size_t r = 0; r < n_rows; ++r) acc[t][r] = std::fma(w[r], x, acc[t][r]);
        }
      }
      for (size_t t = 0; t < n; ++t)
        for (size_t r = 0; r < n_rows; ++r) store(args, first + t, g * 16 + r, acc[t][r]);
    }
  }
}

constexpr MatmulKernels make_table() {
  MatmulKernels table{};
  table.isa = Isa::kBaseline;
  table.pack = pack_groups;
  table.quantize = quantize;
  const auto at = [&table](WeightType type) -> auto& { return table.matmul[static_cast<uint32_t>(type)]; };
  at(WeightType::kF32) = matmul_float<WeightType::kF32>;
  at(WeightType::kF16) = matmul_float<WeightType::kF16>;
  at(WeightType::kBF16) = matmul_float<WeightType::kBF16>;
  at(WeightType::kQ4_0) = matmul_quantised<WeightType::kQ4_0>;
  at(WeightType::kQ4_1) = matmul_quantised<WeightType::kQ4_1>;
  at(WeightType::kQ5_0) = matmul_quantised<WeightType::kQ5_0>;
  at(WeightType::kQ5_1) = matmul_quantised<WeightType::kQ5_1>;
  at(WeightType::kQ8_0) = matmul_quantised<WeightType::kQ8_0>;
  at(WeightType::kQ2_K) = matmul_quantised<WeightType::kQ2_K>;
  at(WeightType::kQ3_K) = matmul_quantised<WeightType::kQ3_K>;
  at(WeightType::kQ4_K) = matmul_quantised<WeightType::kQ4_K>;
  at(WeightType::kQ5_K) = matmul_quantised<WeightType::kQ5_K>;
  at(WeightType::kQ6_K) = matmul_quantised<WeightType::kQ6_K>;
  return table;
}

}  // namespace

constexpr MatmulKernels kMatmulBaseline = make_table();

}  // namespace minfer::cpu
