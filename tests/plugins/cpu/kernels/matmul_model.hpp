// An independent model of quantised matrix products for the tests: element by element from row-major GGUF blocks, written
// from the format descriptions and from the definition of the numbers. Shares no code with the library.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/matmul.hpp"

namespace minfer::cpu::model {

struct TypeInfo {
  WeightType type;
  const char* name;
  size_t bytes, cols;  // of a block; float types: of a value
};
const std::vector<TypeInfo>& all_types();
const TypeInfo& info(WeightType type);
bool is_float(WeightType type);

float half_to_float(uint16_t bits);

enum class Fill { kRandom, kMax, kMin, kZeroScale, kSubnormalScale };
// A row-major matrix of valid blocks with finite scales.
std::vector<uint8_t> random_weights(WeightType type, size_t rows, size_t cols, Fill fill, std::mt19937& rng);

struct Q8 {
  float d;
  int q[32];
};
// One row of activations, 32 columns at a time.
std::vector<Q8> quantize(const float* x, size_t cols);

// Row `row` of the weights times one row of activations (x or its Q8 form), bias not added.
float dot(WeightType type, const uint8_t* weights, size_t row, size_t cols, const float* x, const std::vector<Q8>& q8);

}  // namespace minfer::cpu::model
