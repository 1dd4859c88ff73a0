#include "conformance/block_formats.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "conformance/float16.hpp"

namespace minfer::conformance {
namespace {

uint16_t load_u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }
double load_f16(const uint8_t* p) { return f16_to_double(load_u16(p)); }

// 32 values of 4 bits, or 5 with the fifth in `high` (nullptr: none): low halves of the bytes first, then the high halves.
void decode_nibbles(const uint8_t* bytes, const uint8_t* high, double d, double offset, double* out) {
  uint32_t fifth = 0;
  if (high) std::memcpy(&fifth, high, 4);
  for (int i = 0; i < 32; ++i) {
    const int q = (i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4) | static_cast<int>(fifth >> i & 1) << 4;
    out[i] = d * q + offset;
  }
}

// The 6-bit scale and minimum of sub-block j of Q4_K and Q5_K.
void sub_scale(const uint8_t* scales, int j, int* scale, int* min) {
  if (j < 4) {
    *scale = scales[j] & 63;
    *min = scales[j + 4] & 63;
  } else {
    *scale = (scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4;
    *min = scales[j + 4] >> 4 | (scales[j] >> 6) << 4;
  }
}

// Q4_K, and Q5_K with the fifth bits in `high`: 4 groups of 64 values, each the low and then the high halves of 32 bytes.
void decode_q45_k(const uint8_t* block, const uint8_t* quants, const uint8_t* high, double* out) {
  const double d = load_f16(block), dmin = load_f16(block + 2);
  for (int sub = 0; sub < 8; ++sub) {
    int scale, min;
    sub_scale(block + 4, sub, &scale, &min);
    for (int i = 0; i < 32; ++i) {
      const uint8_t byte = quants[sub / 2 * 32 + i];
      const int q = (sub % 2 ? byte >> 4 : byte & 15) | (high ? (high[i] >> sub & 1) << 4 : 0);
      out[sub * 32 + i] = d * scale * q - dmin * min;
    }
  }
}

void decode_q2_k(const uint8_t* block, double* out) {
  const uint8_t* quants = block + 16;
  const double d = load_f16(block + 80), dmin = load_f16(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, shift = i % 128 / 32 * 2;
    const uint8_t scale = block[i / 16];
    out[i] = d * (scale & 15) * (quants[half * 32 + i % 32] >> shift & 3) - dmin * (scale >> 4);
  }
}

void decode_q3_k(const uint8_t* block, double* out) {
  const uint8_t *high = block, *quants = block + 32, *scales = block + 96;
  const double d = load_f16(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, plane = i % 128 / 32, sub = i / 16;
    const int low = sub < 8 ? scales[sub] & 15 : scales[sub - 8] >> 4;
    const int scale = (low | (scales[8 + sub % 4] >> (sub / 4 * 2) & 3) << 4) - 32;
    const int q = (quants[half * 32 + i % 32] >> (plane * 2) & 3) - (high[i % 32] >> (half * 4 + plane) & 1 ? 0 : 4);
    out[i] = d * scale * q;
  }
}

void decode_q6_k(const uint8_t* block, double* out) {
  const double d = load_f16(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const uint8_t low = block[half * 64 + quarter % 2 * 32 + l];
    const int two = block[128 + half * 32 + l] >> (quarter * 2) & 3;
    const int q = ((quarter < 2 ? low & 15 : low >> 4) | two << 4) - 32;
    out[i] = d * static_cast<int8_t>(block[192 + i / 16]) * q;
  }
}

void decode_block(uint32_t dtype, const uint8_t* p, double* out) {
  switch (dtype) {
    case MI_TYPE_F32: {
      float value;
      std::memcpy(&value, p, 4);
      *out = value;
      return;
    }
    case MI_TYPE_F16: *out = load_f16(p); return;
    case MI_TYPE_BF16: *out = bf16_to_double(load_u16(p)); return;
    case MI_TYPE_Q4_0: return decode_nibbles(p + 2, nullptr, load_f16(p), -8 * load_f16(p), out);
    case MI_TYPE_Q4_1: return decode_nibbles(p + 4, nullptr, load_f16(p), load_f16(p + 2), out);
    case MI_TYPE_Q5_0: return decode_nibbles(p + 6, p + 2, load_f16(p), -16 * load_f16(p), out);
    case MI_TYPE_Q5_1: return decode_nibbles(p + 8, p + 4, load_f16(p), load_f16(p + 2), out);
    case MI_TYPE_Q8_0:
      for (int i = 0; i < 32; ++i) out[i] = load_f16(p) * static_cast<int8_t>(p[2 + i]);
      return;
    case MI_TYPE_Q2_K: return decode_q2_k(p, out);
    case MI_TYPE_Q3_K: return decode_q3_k(p, out);
    case MI_TYPE_Q4_K: return decode_q45_k(p, p + 16, nullptr, out);
    case MI_TYPE_Q5_K: return decode_q45_k(p, p + 48, p + 16, out);
    case MI_TYPE_Q6_K: return decode_q6_k(p, out);
  }
}

constexpr uint32_t kWeightTypes[] = {MI_TYPE_F32,  MI_TYPE_F16,  MI_TYPE_BF16, MI_TYPE_Q4_0, MI_TYPE_Q4_1, MI_TYPE_Q5_0, MI_TYPE_Q5_1,
                                     MI_TYPE_Q8_0, MI_TYPE_Q2_K, MI_TYPE_Q3_K, MI_TYPE_Q4_K, MI_TYPE_Q5_K, MI_TYPE_Q6_K};

}  // namespace

std::span<const uint32_t> weight_types() { return kWeightTypes; }

bool is_quantised(uint32_t dtype) { return sdk::find_dtype(dtype)->block_elements > 1; }

ScalePlaces scale_places(uint32_t dtype) {
  switch (dtype) {
    case MI_TYPE_Q4_1:
    case MI_TYPE_Q5_1:
    case MI_TYPE_Q4_K:
    case MI_TYPE_Q5_K: return {0, 2};
    case MI_TYPE_Q2_K: return {80, 82};
    case MI_TYPE_Q3_K: return {108, -1};
    case MI_TYPE_Q6_K: return {208, -1};
    default: return {0, -1};
  }
}

std::string type_name(uint32_t dtype) {
  const sdk::DTypeInfo* info = sdk::find_dtype(dtype);
  std::string name = info ? info->name : "type" + std::to_string(dtype);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name;
}

std::vector<double> decode(uint32_t dtype, std::span<const std::byte> bytes, uint64_t n) {
  const sdk::DTypeInfo& info = *sdk::find_dtype(dtype);
  std::vector<double> out(n);
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  for (uint64_t i = 0; i < n; i += info.block_elements, p += info.block_bytes) decode_block(dtype, p, &out[i]);
  return out;
}

}  // namespace minfer::conformance
