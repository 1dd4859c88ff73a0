// Exact conversion of half precision and bfloat16 values to f32, without intrinsics. Internal to the kernels; in an
// anonymous namespace because files of different instruction sets may include it.
#pragma once

#include <cstdint>
#include <cstring>

namespace minfer::cpu {
namespace {

inline float bits_to_f32(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float bf16_to_f32(uint16_t bits) { return bits_to_f32(uint32_t{bits} << 16); }

inline float f16_to_f32(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return bits_to_f32(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return bits_to_f32(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // zero and subnormal numbers
  return sign ? -magnitude : magnitude;
}

}  // namespace
}  // namespace minfer::cpu
