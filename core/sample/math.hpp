// exp and log of the sampler. libm's results differ by CPU and version in the last bit; these use only additions,
// multiplications and divisions in a fixed order (never fused), so that a seed draws the same tokens on every machine.
// Error, measured on 10 million points each against 80-bit arithmetic: below 0.97 units in the last place.
#pragma once

namespace minfer::sample {

// e^x. NaN for NaN, +inf above 709.78, 0 below -745.14; results below 2^-1022 may be off by one more unit.
double exp(double x);

// Natural logarithm. NaN for NaN and x < 0, -inf for 0.
double log(double x);

}  // namespace minfer::sample
