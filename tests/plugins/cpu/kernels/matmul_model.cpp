#include "matmul_model.hpp"

#include <cmath>
#include <cstring>

namespace minfer::cpu::model {
namespace {

uint16_t u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }

struct Element {
  int q = 0;      // signed integer of the weight, offset removed
  int scale = 1;  // integer sub-scale
  int min = 1;    // integer sub-min
};

// Element e of a block.
Element element(WeightType type, const uint8_t* p, int e) {
  const int h = e >> 7, g = (e >> 5) & 3, l = e & 31, i = e >> 4, j = e >> 5;
  const auto nibble = [e](const uint8_t* qs) { return e < 16 ? qs[e] & 15 : qs[e - 16] >> 4; };
  const auto fifth = [e](const uint8_t* qh) { return (qh[e / 8] >> (e % 8) & 1) * 16; };
  const auto k4 = [j](const uint8_t* s, Element& x) {
    x.scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) + (s[j - 4] >> 6) * 16;
    x.min = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) + (s[j] >> 6) * 16;
  };
  Element x;
  switch (type) {
    case WeightType::kQ4_0: x.q = nibble(p + 2) - 8; break;
    case WeightType::kQ4_1: x.q = nibble(p + 4); break;
    case WeightType::kQ5_0: x.q = nibble(p + 6) + fifth(p + 2) - 16; break;
    case WeightType::kQ5_1: x.q = nibble(p + 8) + fifth(p + 4); break;
    case WeightType::kQ8_0: x.q = static_cast<int8_t>(p[2 + e]); break;
    case WeightType::kQ2_K:
      x.q = (p[16 + 32 * h + l] >> (2 * g)) & 3;
      x.scale = p[i] & 15;
      x.min = p[i] >> 4;
      break;
    case WeightType::kQ3_K: {
      x.q = ((p[32 + 32 * h + l] >> (2 * g)) & 3) - ((p[l] >> (4 * h + g)) & 1 ? 0 : 4);
      const uint8_t* s = p + 96;
      x.scale = (i < 8 ? s[i] & 15 : s[i - 8] >> 4) + ((s[8 + i % 4] >> (2 * (i / 4))) & 3) * 16 - 32;
      break;
    }
    case WeightType::kQ4_K:
      x.q = (e & 32) ? p[16 + 32 * (e >> 6) + l] >> 4 : p[16 + 32 * (e >> 6) + l] & 15;
      k4(p + 4, x);
      break;
    case WeightType::kQ5_K:
      x.q = ((e & 32) ? p[48 + 32 * (e >> 6) + l] >> 4 : p[48 + 32 * (e >> 6) + l] & 15) + ((p[16 + l] >> j) & 1) * 16;
      k4(p + 4, x);
      break;
    case WeightType::kQ6_K: {
      const int low[4] = {p[64 * h + l] & 15, p[64 * h + 32 + l] & 15, p[64 * h + l] >> 4, p[64 * h + 32 + l] >> 4};
      x.q = low[g] + ((p[128 + 32 * h + l] >> (2 * g)) & 3) * 16 - 32;
      x.scale = static_cast<int8_t>(p[192 + i]);
      break;
    }
    default: break;
  }
  return x;
}

struct ScaleAt {
  int d, m;  // offsets in the block, -1: none
};
ScaleAt scales_of(WeightType type) {
  switch (type) {
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K: return {0, 2};
    case WeightType::kQ2_K: return {80, 82};
    case WeightType::kQ3_K: return {108, -1};
    case WeightType::kQ6_K: return {208, -1};
    default: return {0, -1};
  }
}

float value_at(WeightType type, const uint8_t* p) {
  if (type == WeightType::kF16) return half_to_float(u16(p));
  uint32_t bits = 0;
  if (type == WeightType::kBF16)
    bits = uint32_t{u16(p)} << 16;
  else
    bits = u16(p) | uint32_t{u16(p + 2)} << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

}  // namespace

const std::vector<TypeInfo>& all_types() {
  static const std::vector<TypeInfo> types = {
      {WeightType::kF32, "F32", 4, 1},       {WeightType::kF16, "F16", 2, 1},       {WeightType::kBF16, "BF16", 2, 1},
      {WeightType::kQ4_0, "Q4_0", 18, 32},   {WeightType::kQ4_1, "Q4_1", 20, 32},   {WeightType::kQ5_0, "Q5_0", 22, 32},
      {WeightType::kQ5_1, "Q5_1", 24, 32},   {WeightType::kQ8_0, "Q8_0", 34, 32},   {WeightType::kQ2_K, "Q2_K", 84, 256},
      {WeightType::kQ3_K, "Q3_K", 110, 256}, {WeightType::kQ4_K, "Q4_K", 144, 256}, {WeightType::kQ5_K, "Q5_K", 176, 256},
      {WeightType::kQ6_K, "Q6_K", 210, 256}};
  return types;
}

const TypeInfo& info(WeightType type) {
  for (const TypeInfo& t : all_types())
    if (t.type == type) return t;
  return all_types().front();
}

bool is_float(WeightType type) { return info(type).cols == 1; }

float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return static_cast<float>(bits & 0x8000 ? -magnitude : magnitude);
}

std::vector<uint8_t> random_weights(WeightType type, size_t rows, size_t cols, Fill fill, std::mt19937& rng) {
  const TypeInfo& t = info(type);
  std::vector<uint8_t> bytes(rows * cols / t.cols * t.bytes);
  const auto put16 = [](uint8_t* p, unsigned v) {
    p[0] = static_cast<uint8_t>(v);
    p[1] = static_cast<uint8_t>(v >> 8);
  };
  // f16 of magnitude 2^-9 to 2^0, either sign
  const auto random_half = [&rng] { return (rng() & 0x8000) | ((6 + rng() % 10) << 10) | (rng() & 1023); };
  for (size_t at = 0; at < bytes.size(); at += t.bytes) {
    uint8_t* p = &bytes[at];
    if (t.cols == 1) {
      if (type == WeightType::kF16) {
        put16(p, fill == Fill::kSubnormalScale ? rng() & 0x83ff : random_half());
      } else {
        const unsigned high = (rng() & 0x8000) | ((118 + rng() % 10) << 7) | (rng() & 127);
        put16(p + t.bytes - 2, high);
        if (t.bytes == 4) put16(p, rng());
      }
      continue;
    }
    for (size_t i = 0; i < t.bytes; ++i) p[i] = static_cast<uint8_t>(fill == Fill::kMax ? 0xff : fill == Fill::kMin ? 0 : rng());
    if (type == WeightType::kQ8_0 && fill == Fill::kMax) std::memset(p + 2, 0x7f, 32);
    if (type == WeightType::kQ8_0 && fill == Fill::kMin) std::memset(p + 2, 0x80, 32);
    if (type == WeightType::kQ6_K && fill == Fill::kMax) std::memset(p + 192, 0x7f, 16);
    if (type == WeightType::kQ6_K && fill == Fill::kMin) std::memset(p + 192, 0x80, 16);
    const ScaleAt s = scales_of(type);
    for (int offset : {s.d, s.m}) {
      if (offset < 0) continue;
      put16(p + offset, fill == Fill::kZeroScale ? 0 : fill == Fill::kSubnormalScale ? rng() & 0x83ff : random_half());
    }
  }
  return bytes;
}

std::vector<Q8> quantize(const float* x, size_t cols) {
  std::vector<Q8> blocks(cols / 32);
  for (size_t b = 0; b < blocks.size(); ++b) {
    float amax = 0;
    for (int k = 0; k < 32; ++k) amax = std::max(amax, std::fabs(x[b * 32 + k]));
    const bool tiny = amax < std::ldexp(1.0f, -100);
    blocks[b].d = tiny ? 0 : amax / 127;
    for (int k = 0; k < 32; ++k) {
      const float scaled = tiny ? 0 : x[b * 32 + k] * (127 / amax);
      const float down = std::floor(scaled);
      const float rest = scaled - down;  // exact
      int q = static_cast<int>(down);
      if (rest > 0.5f || (rest == 0.5f && q % 2 != 0)) ++q;
      blocks[b].q[k] = q;
    }
  }
  return blocks;
}

float dot(WeightType type, const uint8_t* weights, size_t row, size_t cols, const float* x, const std::vector<Q8>& q8) {
  const TypeInfo& t = info(type);
  const uint8_t* p = weights + row * (cols / t.cols * t.bytes);
  float acc = 0, scaled = 0, mins = 0;
  if (t.cols == 1) {
    for (size_t k = 0; k < cols; ++k) acc = std::fma(value_at(type, p + k * t.bytes), x[k], acc);
    return acc;
  }
  const ScaleAt s = scales_of(type);
  for (size_t b = 0; b < cols / 32; ++b) {
    const uint8_t* block = p + b * 32 / t.cols * t.bytes;
    int64_t isum = 0, min_sum = 0, sum = 0;
    int min = 0;
    for (size_t k = 0; k < 32; ++k) {
      const Element e = element(type, block, static_cast<int>((b * 32 + k) % t.cols));
      isum += e.scale * e.q * q8[b].q[k];
      min_sum += e.min * q8[b].q[k];
      sum += q8[b].q[k];
      min = e.min;
    }
    const float da = q8[b].d, scaled_sum = da * static_cast<float>(sum);
    const float dw = half_to_float(u16(block + s.d)), mw = s.m < 0 ? 0 : half_to_float(u16(block + s.m));
    if (t.cols == 32) {
      acc = std::fma(dw * da, static_cast<float>(isum), acc);
      if (s.m >= 0) acc = std::fma(mw, scaled_sum, acc);
      continue;
    }
    scaled = std::fma(da, static_cast<float>(isum), scaled);
    if (type == WeightType::kQ2_K)
      mins = std::fma(da, static_cast<float>(min_sum), mins);
    else
      mins = std::fma(static_cast<float>(min), scaled_sum, mins);
    if (b % 8 < 7) continue;
    acc = std::fma(dw, scaled, acc);
    if (s.m >= 0) acc = std::fma(-mw, mins, acc);
    scaled = mins = 0;
  }
  return acc;
}

}  // namespace minfer::cpu::model
