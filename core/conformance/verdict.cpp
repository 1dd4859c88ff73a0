#include "conformance/verdict.hpp"

#include <algorithm>
#include <bit>

namespace minfer::conformance {
namespace {

// Results and sums below this size may be flushed to zero by a device.
constexpr double kSmallestNormal = 0x1p-126;

std::string number(float x) { return text("{:.9g}", x); }

int kind_of(double x) { return std::isnan(x) ? 2 : std::isinf(x) ? (x > 0 ? 1 : -1) : 0; }

Error wrong(std::string_view what, uint64_t row, uint64_t element, float got, double want, std::string_view why) {
  const bool unwritten = std::bit_cast<uint32_t>(got) == kPoison;
  return invalid("{}, row {}, element {}: got {}, want {}, {}", what, row, element, unwritten ? "nothing (not written)" : number(got),
                 number(static_cast<float>(want)), why);
}

bool within_one_ulp(float got, double want) {
  const auto rounded = static_cast<float>(want);
  if (std::fabs(static_cast<double>(got) - want) <= kSmallestNormal) return true;
  return got >= std::nextafter(rounded, -INFINITY) && got <= std::nextafter(rounded, INFINITY);
}

}  // namespace

Limits limits(double nmse) { return {nmse, 8 * std::sqrt(nmse)}; }

Status judge(std::span<const float> got, const RowValues& want, const Limits& limits, std::string_view what) {
  for (uint64_t r = 0; r < want.rows(); ++r) {
    if (!want.defined[r]) continue;
    const float* g = &got[r * want.width];
    const double* w = &want.x[r * want.width];
    double sum = 0, largest = 0;
    uint64_t at = 0;
    for (uint64_t i = 0; i < want.width; ++i) {
      if (std::bit_cast<uint32_t>(g[i]) == kPoison) return wrong(what, r, i, g[i], w[i], "as if the node had not run");
      if (limits.nmse < 0) {
        const auto rounded = static_cast<float>(w[i]);
        if (g[i] != rounded && !(std::isnan(rounded) && std::isnan(g[i]))) return wrong(what, r, i, g[i], w[i], "must be the same bits");
        continue;
      }
      const int kind = kind_of(static_cast<float>(w[i]));
      if (kind_of(g[i]) != kind) return wrong(what, r, i, g[i], w[i], kind ? "must not be finite" : "must be finite");
      if (kind) continue;
      if (limits.nmse == 0 && !within_one_ulp(g[i], w[i]))
        return wrong(what, r, i, g[i], w[i], "must be correct to one unit in the last place");
      const double error = std::fabs(static_cast<double>(g[i]) - w[i]);
      sum += error * error;
      if (error > largest) {
        largest = error;
        at = i;
      }
    }
    if (limits.nmse <= 0) continue;
    const auto width = static_cast<double>(want.width);
    const double energy = std::max(want.energy[r], width * (kSmallestNormal * 1e3) * (kSmallestNormal * 1e3));
    const double nmse = sum / energy, relative = largest / std::sqrt(energy / width);
    if (nmse <= limits.nmse && relative <= limits.largest_error) {
      const double concentration = largest / std::sqrt(sum / width);
      if (limits.concentration == 0 || want.width < 100 || sum == 0 || concentration <= limits.concentration) continue;
      return wrong(what, r, at, g[at], w[at],
                   text("its error is {:.2g} times the RMS error of the row (limit {:.2g})", concentration, limits.concentration));
    }
    return wrong(what, r, at, g[at], w[at],
                 text("NMSE of the row {:.2g} (limit {:.2g}), largest error {:.2g} of its RMS (limit {:.2g})", nmse, limits.nmse, relative,
                      limits.largest_error));
  }
  return {};
}

Status judge_same(std::span<const float> got, std::span<const float> want, uint64_t width, std::string_view what) {
  for (size_t i = 0; i < got.size(); ++i)
    if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(want[i]))
      return wrong(what, i / width, i % width, got[i], want[i], "must be the same bits");
  return {};
}

}  // namespace minfer::conformance
