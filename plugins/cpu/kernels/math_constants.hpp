// Coefficients of the float exponential, shared by every instruction set: each of them performs the same operations in the
// same order, so that results agree bit for bit. Plain constexpr, internal linkage:
// each file keeps its own copy.
//
// exp(x): x limited to [kExpLow, kExpHigh]; t = fma(x, log2 e, kExpMagic), n = t - kExpMagic (x / ln 2 rounded to even);
//   r = fma(n, -kLn2Low, fma(n, -kLn2High, x)); q = c4 r^4 + ... + c0 by Horner with fma; p = fma(q, r*r, r) + 1;
//   result = p * 2^(n >> 1) * 2^(n - (n >> 1)), two factors so that subnormal results round once.
// Largest error against the exact value: 1.05 ulp over all floats with a normal result, 1 ulp where it is subnormal.
// -inf and below kExpLow -> +0, above ln(FLT_MAX) -> +inf, NaN -> NaN.
#pragma once

namespace minfer::cpu {

constexpr float kExpLow = -104.0f;  // exp(-104) rounds to 0
constexpr float kExpHigh = 89.0f;   // exp(89) rounds to infinity
constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kExpMagic = 0x1.8p+23f;  // adding it leaves an integer in the low bits
constexpr float kLn2High = 0x1.62e43p-1f;
constexpr float kLn2Low = -0x1.05c61p-29f;
// (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2, interpolated at Chebyshev points (relative error of exp(r) below 1.1e-8).
constexpr float kExpC0 = 0x1p-1f;
constexpr float kExpC1 = 0x1.5554dcp-3f;
constexpr float kExpC2 = 0x1.555518p-5f;
constexpr float kExpC3 = 0x1.120be2p-7f;
constexpr float kExpC4 = 0x1.6d117cp-10f;

}  // namespace minfer::cpu
