// Argument reduction by powers of two, then a short power series; see each function. Must not call libm.
#include "sample/math.hpp"

#include <bit>
#include <cstdint>
#include <limits>

namespace minfer::sample {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts: the first has 21 trailing zero bits, so that k * kLn2High is exact for every |k| < 2^21.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInverseLn2 = 0x1.71547652b82fep+0;

// 2^k for -1022 <= k <= 1023.
double power_of_two(int64_t k) { return std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52); }

}  // namespace

double exp(double x) {
  if (x != x) return kNaN;
  if (x > 709.782712893384) return kInfinity;
  if (x < -745.1332191019412) return 0.0;

  // x = k ln 2 + r, |r| <= ln(2) / 2. Adding 1.5 * 2^52 rounds to an integer.
  constexpr double kRound = 0x1.8p52;
  const double k = (x * kInverseLn2 + kRound) - kRound;
  const double r = (x - k * kLn2High) - k * kLn2Low;

  // e^r - 1 - r = r^2 (1/2! + r/3! + ... + r^11/13!); the first term left out is below 2^-57.
  constexpr double kInverseFactorial[] = {1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
                                          1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  double series = 0.0;
  for (int i = 11; i >= 0; --i) series = series * r + kInverseFactorial[i];
  const double e_r = 1.0 + (r + r * r * series);

  // Two factors, since 2^k alone may lie outside the normal range.
  const int64_t exponent = static_cast<int64_t>(k);
  const int64_t half = exponent / 2;
  return e_r * power_of_two(half) * power_of_two(exponent - half);
}

double log(double x) {
  if (x != x || x < 0.0) return kNaN;
  if (x == 0.0) return -kInfinity;
  if (x == kInfinity) return kInfinity;

  // x = 2^k m with m in [sqrt(1/2), sqrt(2)).
  int64_t k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  uint64_t bits = std::bit_cast<uint64_t>(x);
  k += static_cast<int64_t>(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u;
  double m = std::bit_cast<double>(bits);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    k += 1;
  }

  // ln m = 2 artanh(s), s = f / (2 + f), f = m - 1 (exact): 2s (1 + z/3 + z^2/5 + ...), z = s^2 <= 0.0295.
  // 2s = f - s f keeps f, which is exact, as the leading term.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double series = 0.0;
  for (int n = 10; n >= 1; --n) series = (series + 1.0 / (2 * n + 1)) * z;
  const double exponent = static_cast<double>(k);
  // The correction to f: 2 s series - s f. Collected before the large terms are added.
  const double correction = s * (2.0 * series - f);
  return exponent * kLn2High + (f + (correction + exponent * kLn2Low));
}

}  // namespace minfer::sample
