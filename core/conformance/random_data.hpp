// Repeatable test data: activations and weights of every type, in the fills that break kernels.
#pragma once

#include <cmath>
#include <string_view>

#include "conformance/block_formats.hpp"
#include "engine/graph/graph.hpp"

namespace minfer::conformance {

// SplitMix64: the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  double gauss();
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(next() % n); }
  std::vector<uint32_t> permutation(uint32_t n);

 private:
  uint64_t state_;
};

uint64_t hash_name(std::string_view name);

enum class Fill {
  kGauss,
  kUniform,
  kOutliers,  // one feature a thousand times larger
  kZeros,     // whole blocks and the first row are zero; scales of 0
  kEqual,     // one value everywhere
  kTiny,      // weights with subnormal scales; small activations
  kDenormal,  // activations below the smallest normal f32
  kMax,       // the largest scales and the extreme quantised values, all terms of one sign
};
inline constexpr Fill kFills[] = {Fill::kGauss, Fill::kUniform, Fill::kOutliers, Fill::kZeros,
                                  Fill::kEqual, Fill::kTiny,    Fill::kDenormal, Fill::kMax};
std::string_view fill_name(Fill fill);

// rows x width activations.
std::vector<float> random_floats(uint64_t width, uint64_t rows, Fill fill, Random& random);

// A weight as a model file holds it, and what its bytes mean.
struct Tensor {
  uint32_t dtype = 0;
  Shape shape;
  uint32_t roles = 0;
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

// width must be a whole number of blocks.
Tensor random_matrix(uint32_t dtype, uint64_t width, uint64_t rows, Fill fill, Random& random);
// An f32 vector.
Tensor vector_tensor(const std::vector<float>& values);

}  // namespace minfer::conformance
