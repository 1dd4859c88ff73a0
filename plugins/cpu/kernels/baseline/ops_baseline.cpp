// The definition of every element-wise and row operation, in plain C++: other instruction sets equal it bit for bit.
#include <cmath>

#include "kernels/math.hpp"
#include "kernels/op_tables.hpp"

namespace minfer::cpu::baseline {
namespace {

constexpr int kLanes = 16;

float sum_lanes(float* lanes) noexcept {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  }
  return lanes[0];
}

void rms_norm(const float* x, const float* weight, float* y, int64_t n_rows, int64_t n, float eps) noexcept {
  for (int64_t row = 0; row < n_rows; ++row, x += n, y += n) {
    float lanes[kLanes] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i % kLanes] = std::fma(x[i], x[i], lanes[i % kLanes]);
    const float mean = sum_lanes(lanes) / static_cast<float>(n);
    const float factor = 1.0f / std::sqrt(mean + eps);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor * weight[i];
  }
}

void add(const float* a, const float* b, float* y, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void mul(const float* a, const float* b, float* y, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

void scale(const float* x, float factor, float* y, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
}

void exp(const float* x, float* y, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = exp_f32(x[i]);
}

void silu(const float* x, float* y, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + exp_f32(-x[i]));
}

void silu_mul(const float* gate, const float* up, float* y, int64_t n) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0f + exp_f32(-gate[i])) * up[i];
}

void rotate(float* a, float* b, float cos, float sin) noexcept {
  const float turned_a = std::fma(*a, cos, -(*b * sin));
  *b = std::fma(*a, sin, *b * cos);
  *a = turned_a;
}

void rope_split(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept {
  const int64_t half = rope_dim / 2;
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim) {
    for (int64_t i = 0; i < half; ++i) rotate(x + i, x + i + half, cos[i], sin[i]);
  }
}

void rope_interleaved(float* x, int64_t n_heads, int64_t head_dim, int64_t rope_dim, const float* cos, const float* sin) noexcept {
  for (int64_t head = 0; head < n_heads; ++head, x += head_dim) {
    for (int64_t i = 0; i < rope_dim / 2; ++i) rotate(x + 2 * i, x + 2 * i + 1, cos[i], sin[i]);
  }
}

}  // namespace

constexpr OpKernels kOps = {.isa = "baseline",
                            .rms_norm = rms_norm,
                            .add = add,
                            .mul = mul,
                            .scale = scale,
                            .exp = exp,
                            .silu = silu,
                            .silu_mul = silu_mul,
                            .rope_split = rope_split,
                            .rope_interleaved = rope_interleaved,
                            .attend = attend};

}  // namespace minfer::cpu::baseline
