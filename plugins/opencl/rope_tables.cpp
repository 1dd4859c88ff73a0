#include "rope_tables.hpp"

#include <algorithm>
#include <cmath>

namespace minfer::opencl {
namespace {

constexpr double kLargestAngle = 4194304.0;  // 2^22: beyond it neighbouring positions lose their distance in f32 graphs

bool positive_and_finite(double x) { return x > 0 && std::isfinite(x); }

}  // namespace

void rope_angles(int64_t first_position, int64_t n_positions, const mi_op_attrs& rope, const float* freq_factors, std::vector<float>& cos,
                 std::vector<float>& sin) {
  const int64_t half = rope.head_dim / 2;
  const auto refuse = [&] {
    sdk::fail(MI_INVALID_ARGUMENT, "rotation of ", rope.head_dim, " elements with base ", rope.rope_freq_base, " and scale ",
              rope.rope_freq_scale, " over ", n_positions, " positions is out of range");
  };
  if (!positive_and_finite(rope.rope_freq_base) || !positive_and_finite(rope.rope_freq_scale)) refuse();
  cos.resize(static_cast<size_t>((n_positions - first_position) * half));
  sin.resize(cos.size());
  for (int64_t i = 0; i < half; ++i) {
    double frequency = rope.rope_freq_scale * std::pow(static_cast<double>(rope.rope_freq_base),
                                                       -2.0 * static_cast<double>(i) / static_cast<double>(rope.head_dim));
    if (freq_factors) {
      if (!positive_and_finite(freq_factors[i])) refuse();
      frequency /= freq_factors[i];
    }
    if (!(static_cast<double>(n_positions) * frequency < kLargestAngle)) refuse();
    for (int64_t p = first_position; p < n_positions; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      cos[static_cast<size_t>((p - first_position) * half + i)] = static_cast<float>(std::cos(angle));
      sin[static_cast<size_t>((p - first_position) * half + i)] = static_cast<float>(std::sin(angle));
    }
  }
}

const RopeTable& RopeTables::get(const Context& context, int64_t n_positions, const mi_op_attrs& rope,
                                 const std::vector<float>* freq_factors) {
  const std::vector<float> factors = freq_factors ? *freq_factors : std::vector<float>();
  for (const auto& e : entries_)
    if (e->head_dim == rope.head_dim && e->freq_base == rope.rope_freq_base && e->freq_scale == rope.rope_freq_scale &&
        e->factors == factors && e->n_positions >= n_positions)
      return e->table;
  std::vector<float> cos, sin;
  rope_angles(0, n_positions, rope, freq_factors ? freq_factors->data() : nullptr, cos, sin);
  const auto upload = [&](const std::vector<float>& values) {
    return std::make_shared<const Mem>(context.alloc_with(values.data(), values.size() * sizeof(float), "a rotation table"));
  };
  entries_.push_back(std::make_unique<Entry>(
      Entry{rope.head_dim, rope.rope_freq_base, rope.rope_freq_scale, factors, n_positions, RopeTable{upload(cos), upload(sin)}}));
  return entries_.back()->table;
}

}  // namespace minfer::opencl
