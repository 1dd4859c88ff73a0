// The project's own elementary functions: libm's results differ by CPU, ours do not.
// Accuracy is measured by tests/plugins/cpu/ops against long double.
#pragma once

#include <cstdint>

namespace minfer::cpu {

float exp_f32(float x) noexcept;  // the definition of exp in every kernel; contract in math_constants.hpp

// Double precision, used for tables only. Relative error below 1e-15 each.
double exp_f64(double x) noexcept;                 // |x| <= 700
double log_f64(double x) noexcept;                 // x > 0, normal
double pow_f64(double base, double y) noexcept;    // exp(y log base): base > 0, relative error 1e-15 * (1 + |y log base|)
inline constexpr double kSinCosLimit = 4194304.0;  // 2^22
// |x| < kSinCosLimit; next to a zero of sin or cos the error is 1e-28 absolute instead.
void sin_cos_f64(double x, double* sin, double* cos) noexcept;

}  // namespace minfer::cpu
