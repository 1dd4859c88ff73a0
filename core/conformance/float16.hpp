// The two 16-bit float formats, by their definitions. Nothing here is fast.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace minfer::conformance {

// IEEE 754 binary16.
inline double f16_to_double(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction ? std::nan("") : INFINITY;
  return bits & 0x8000 ? -value : value;
}

// Rounded to the nearest, ties to even. Beyond the largest half: infinity.
inline uint16_t double_to_f16(double x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7e00);
  const double magnitude = std::fabs(x);
  if (magnitude == 0) return sign;
  if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);            // magnitude = [0.5, 1) * 2^exponent
  exponent = exponent < -13 ? -13 : exponent;  // below 2^-14: subnormal, one fixed step
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 11 - exponent)));
  // `steps` counts units of 2^(exponent-11); 1024 of them carry into the exponent field by themselves.
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 13) << 10) + steps));
}

inline double bf16_to_double(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Of a finite value, ties to even.
inline uint16_t double_to_bf16(double x) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace minfer::conformance
