// Judges the rows of an output against the reference. Row by row, never a whole tensor at once: one wrong row among thousands would
// drown in the mean.
#pragma once

#include <span>

#include "conformance/reference.hpp"

namespace minfer::conformance {

struct Limits {
  double nmse;           // squared error of a row over its energy
  double largest_error;  // of one element, over the row's RMS (from its energy)
  // Of one element, over the RMS of the errors of its row, where that has enough elements to tell: rounding spreads over a row, a wrong
  // element stands alone. 0: not asked.
  double concentration = 0;
};

// The usual pair: errors spread over a row stay within 8 times their RMS.
Limits limits(double nmse);

// Each value correctly rounded to f32, or one unit beside it.
inline constexpr Limits kOneUlp{0, 0};
// The very value of the reference rounded to f32; the sign of a zero is free.
inline constexpr Limits kSameBits{-1, -1};

// Compares [rows][want.width] values with the reference; infinities and NaN must stand exactly where it has them. The error names
// row, element, values, figures and limits.
Status judge(std::span<const float> got, const RowValues& want, const Limits& limits, std::string_view what);

// Bit for bit.
Status judge_same(std::span<const float> got, std::span<const float> want, uint64_t width, std::string_view what);

// What a trial fills memory with: a signalling NaN that no operation makes.
inline constexpr uint32_t kPoison = 0x7fa5c0deu;

}  // namespace minfer::conformance
