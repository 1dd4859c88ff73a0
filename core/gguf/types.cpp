// The table of tensor types, and sizes computed from it.
#include "gguf/types.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/checked_math.hpp"

namespace minfer::gguf {
namespace {

// clang-format off: one type a line
constexpr std::array kTypes = std::to_array<TypeInfo>({
    {0, "F32", 1, 4},       {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},      {4, "Q4_2", 0, 0},
    {5, "Q4_3", 0, 0},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},  {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292}, {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18}, {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},
    {25, "I16", 1, 2},      {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},     {31, "Q4_0_4_4", 0, 0},   {32, "Q4_0_4_8", 0, 0},   {33, "Q4_0_8_8", 0, 0},   {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66}, {36, "IQ4_NL_4_4", 0, 0}, {37, "IQ4_NL_4_8", 0, 0}, {38, "IQ4_NL_8_8", 0, 0}, {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},  {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
});
// clang-format on

constexpr bool ids_are_positions() {
  for (size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i].id != i) return false;
  return true;
}
static_assert(ids_are_positions(), "find_type indexes the table by id");

}  // namespace

const TypeInfo* find_type(uint32_t id) { return id < kTypes.size() ? &kTypes[id] : nullptr; }

const TypeInfo& type_info(TensorType type) {
  const TypeInfo* info = find_type(static_cast<uint32_t>(type));
  assert(info && !info->retired());
  return *info;
}

Result<uint64_t> tensor_bytes(const TypeInfo& type, std::span<const uint64_t> dims) {
  uint64_t elements = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return invalid("dim {} is 0", i);
    const auto product = checked_mul(elements, dims[i]);
    if (!product || *product > INT64_MAX) return invalid("the product of its dims exceeds 2^63 (dim {} is {})", i, dims[i]);
    elements = *product;
  }
  if (dims[0] % type.block_size != 0)
    return invalid("its rows of {} elements are not a multiple of the block of {} elements of type {}", dims[0], type.block_size,
                   type.name);
  const auto bytes = checked_mul(elements / type.block_size, type.block_bytes);
  if (!bytes || *bytes > INT64_MAX) return invalid("{} elements of type {} exceed 2^63 bytes", elements, type.name);
  return *bytes;
}

}  // namespace minfer::gguf
