// Exact conversion of half precision and bfloat16 values to f32, and f32 to half, without intrinsics; halves equal F16C bit for
// bit. Internal to the kernels; in an anonymous namespace because files of different instruction sets may include it.
#pragma once

#include <cstdint>
#include <cstring>

namespace minfer::cpu {
namespace {

constexpr float kF16Max = 65504.0f;  // the largest finite half

inline float bits_to_f32(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float bf16_to_f32(uint16_t bits) { return bits_to_f32(uint32_t{bits} << 16); }

inline float f16_to_f32(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return bits_to_f32(sign | 0x7f800000 | mantissa << 13 | (mantissa != 0 ? 0x400000 : 0));  // NaN comes out quiet
  if (exponent != 0) return bits_to_f32(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // zero and subnormal numbers
  return sign ? -magnitude : magnitude;
}

// Rounds to nearest even; subnormal halves are kept, 65520 and above become infinite, NaN stays NaN.
inline uint16_t f32_to_f16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));  // NaN
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);                              // 2^16 and above
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves the value in units of 2^-24 in the low bits, rounded to even
    const float shifted = bits_to_f32(magnitude) + 0.5f;
    std::memcpy(&bits, &shifted, sizeof bits);
    return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
  }
  const uint32_t to_even = (magnitude >> 13 & 1u) + 0xfffu;
  return static_cast<uint16_t>(sign | (magnitude - 0x38000000u + to_even) >> 13);  // a carry reaches infinity by itself
}

}  // namespace
}  // namespace minfer::cpu
