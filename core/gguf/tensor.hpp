// A tensor as it lies in a model file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "gguf/named_list.hpp"
#include "gguf/types.hpp"

namespace minfer::gguf {

inline constexpr size_t kMaxDims = 4;

// name and bytes are views into the mapping of its file.
struct Tensor {
  std::string_view name;
  TensorType type = TensorType::kF32;
  uint32_t n_dims = 0;                              // as written in the file, 1 to 4
  std::array<uint64_t, kMaxDims> dims{1, 1, 1, 1};  // dims[0] = row width, the fastest; 1 beyond n_dims
  std::span<const std::byte> bytes;                 // dims[1]*dims[2]*dims[3] rows of whole blocks
};

using TensorList = NamedList<Tensor>;

}  // namespace minfer::gguf
