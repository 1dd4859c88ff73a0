// Tables of rotation angles; see the header.
#include "kernels/rope_table.hpp"

#include "kernels/math.hpp"

namespace minfer::cpu {
namespace {

bool positive_and_finite(double x) noexcept { return x >= 0x1p-1022 && x <= 1.7976931348623157e308; }

}  // namespace

bool rope_table(int64_t n_positions, int64_t rope_dim, double freq_base, double freq_scale, const float* freq_factors, float* cos,
                float* sin) noexcept {
  if (rope_dim <= 0 || rope_dim % 2 != 0 || n_positions < 0) return false;
  if (!positive_and_finite(freq_base) || !positive_and_finite(freq_scale)) return false;
  const int64_t half = rope_dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    double frequency = freq_scale * pow_f64(freq_base, -2.0 * static_cast<double>(i) / static_cast<double>(rope_dim));
    if (freq_factors != nullptr) {
      if (!positive_and_finite(freq_factors[i])) return false;
      frequency /= freq_factors[i];
    }
    if (!(static_cast<double>(n_positions) * frequency < kSinCosLimit)) return false;
    for (int64_t position = 0; position < n_positions; ++position) {
      double c, s;
      sin_cos_f64(static_cast<double>(position) * frequency, &s, &c);
      cos[position * half + i] = static_cast<float>(c);
      sin[position * half + i] = static_cast<float>(s);
    }
  }
  return true;
}

}  // namespace minfer::cpu
