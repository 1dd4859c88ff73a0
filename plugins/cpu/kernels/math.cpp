// Elementary functions by range reduction and polynomials, from exactly rounded operations only (+ - * / fma, nearbyint, ldexp).
#include "kernels/math.hpp"

#include <cmath>
#include <cstring>

#include "kernels/math_constants.hpp"

namespace minfer::cpu {
namespace {

float power_of_two(uint32_t n) noexcept {  // n as a two's complement exponent, normal range
  const uint32_t bits = (n + 127u) << 23;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// 1 / n!, filled by the compiler.
struct InverseFactorials {
  double value[19];
  constexpr InverseFactorials() : value{} {
    double factorial = 1.0;  // exact up to 18!
    for (int n = 0; n < 19; ++n) {
      factorial *= n > 0 ? n : 1;
      value[n] = 1.0 / factorial;
    }
  }
};
constexpr InverseFactorials kInverse;

// ln 2 and pi/2 in pieces; a piece times a whole number of the allowed range is exact.
constexpr double kLn2HighD = 0x1.62e42feep-1;
constexpr double kLn2LowD = 0x1.a39ef35793c76p-33;
constexpr double kHalfPiHigh = 0x1.921fb54p+0;
constexpr double kHalfPiMid = 0x1.10b46118p-30;
constexpr double kHalfPiLow = 0x1.313198a2e037p-61;

}  // namespace

float exp_f32(float x) noexcept {
  float limited = kExpLow > x ? kExpLow : x;  // both comparisons are false for NaN
  limited = kExpHigh < limited ? kExpHigh : limited;
  const float shifted = std::fma(limited, kLog2E, kExpMagic);
  const float n = shifted - kExpMagic;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, limited));
  float q = kExpC4;
  q = std::fma(q, r, kExpC3);
  q = std::fma(q, r, kExpC2);
  q = std::fma(q, r, kExpC1);
  q = std::fma(q, r, kExpC0);
  const float p = std::fma(q, r * r, r) + 1.0f;
  uint32_t shifted_bits, magic_bits;
  std::memcpy(&shifted_bits, &shifted, 4);
  std::memcpy(&magic_bits, &kExpMagic, 4);
  const uint32_t exponent = shifted_bits - magic_bits;
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(exponent) >> 1);
  return p * power_of_two(half) * power_of_two(exponent - half);
}

double exp_f64(double x) noexcept {
  const double n = std::nearbyint(x * 0x1.71547652b82fep+0);
  const double r = (x - n * kLn2HighD) - n * kLn2LowD;
  double sum = kInverse.value[14];  // the Taylor series: |r| <= 0.347, remainder below 1e-18
  for (int k = 13; k >= 2; --k) sum = sum * r + kInverse.value[k];
  return std::ldexp(1.0 + (r + r * r * sum), static_cast<int>(n));
}

double log_f64(double x) noexcept {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // [0.5, 1)
  if (mantissa < 0x1.6a09e667f3bcdp-1) {       // sqrt(1/2)
    mantissa *= 2.0;
    --exponent;
  }
  // log m = 2 artanh(s) = 2 (s + s^3/3 + s^5/5 + ...), |s| <= 0.172. With f = m - 1: 2s = f - s f, and f is exact.
  const double f = mantissa - 1.0;
  const double s = f / (mantissa + 1.0);
  const double s2 = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 2.0 / k) * s2;
  const double low = s * (sum - f);
  return exponent * kLn2HighD + (f + (low + exponent * kLn2LowD));
}

double pow_f64(double base, double y) noexcept { return exp_f64(y * log_f64(base)); }

void sin_cos_f64(double x, double* sin, double* cos) noexcept {
  const double n = std::nearbyint(x * 0x1.45f306dc9c883p-1);
  const double r = ((x - n * kHalfPiHigh) - n * kHalfPiMid) - n * kHalfPiLow;
  const double r2 = r * r;
  double s = 0.0, c = 0.0;  // Taylor series: |r| <= 0.786, remainders below 1e-19
  for (int k = 17; k >= 3; k -= 2) s = (kInverse.value[k] - s) * r2;
  for (int k = 18; k >= 4; k -= 2) c = (kInverse.value[k] - c) * r2;
  const double sine = r - r * s;
  const double cosine = 1.0 - (0.5 - c) * r2;
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      *sin = sine;
      *cos = cosine;
      return;
    case 1:
      *sin = cosine;
      *cos = -sine;
      return;
    case 2:
      *sin = -sine;
      *cos = -cosine;
      return;
    default:
      *sin = -cosine;
      *cos = sine;
      return;
  }
}

}  // namespace minfer::cpu
