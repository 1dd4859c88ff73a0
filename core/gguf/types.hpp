// The tensor types of GGUF files: their ids, names and block sizes. Knows nothing of what the engine can compute: a type that
// no backend supports still needs its size, so that the refusal can name it.
// Source: the type list and block structs of the ggml library (state of 2026).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.hpp"

namespace minfer::gguf {

// Values are the ids that stand in files.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

struct TypeInfo {
  uint32_t id;
  std::string_view name;  // as other tools print it: "Q4_K"
  uint32_t block_size;    // elements of one block; rows are whole blocks
  uint32_t block_bytes;   // bytes of one block; 0 for a retired type
  bool retired() const { return block_bytes == 0; }
};

// Every id that was ever given out, retired ones too. nullptr: unknown.
const TypeInfo* find_type(uint32_t id);

// For a type that came from a parsed file, hence known and not retired.
const TypeInfo& type_info(TensorType type);
inline std::string_view type_name(TensorType type) { return type_info(type).name; }

// Bytes of a tensor of these dims (1 to 4, dims[0] = row width). Refuses a zero dim, a row that is not whole blocks and sizes
// beyond 2^63 - 1 elements or bytes. The text starts with what is wrong; the caller puts the tensor's name in front.
Result<uint64_t> tensor_bytes(const TypeInfo& type, std::span<const uint64_t> dims);

}  // namespace minfer::gguf
