// The cosines and sines that rotary position embedding needs, computed once per session.
#pragma once

#include <cstdint>

namespace minfer::cpu {

// cos, sin: [n_positions][rope_dim / 2], of angle = position * freq_scale * freq_base^(-2i / rope_dim) / freq_factors[i]
// (freq_factors null: 1). Computed in double by our own functions, rounded once to float.
// False, with nothing promised about the tables, if rope_dim is odd or not positive, a parameter is not positive and finite,
// or an angle reaches 2^22.
bool rope_table(int64_t n_positions, int64_t rope_dim, double freq_base, double freq_scale, const float* freq_factors, float* cos,
                float* sin) noexcept;

}  // namespace minfer::cpu
