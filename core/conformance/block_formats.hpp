// What the bytes of a weight mean: the values of a block as exact doubles, straight from the definition of each format in the GGUF
// specification. Written for checking: shares nothing with any backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "minfer/plugin/dtype.hpp"

namespace minfer::conformance {

// Where the half-precision scales of a block lie; every other byte of a block may hold anything.
struct ScalePlaces {
  int d = -1;    // multiplies the quantised values
  int min = -1;  // is added or subtracted
};

// The weight types of the ABI.
std::span<const uint32_t> weight_types();
bool is_quantised(uint32_t dtype);
ScalePlaces scale_places(uint32_t dtype);  // of a quantised type
std::string type_name(uint32_t dtype);     // "q4_k"

// n elements, a whole number of blocks.
std::vector<double> decode(uint32_t dtype, std::span<const std::byte> bytes, uint64_t n);

}  // namespace minfer::conformance
