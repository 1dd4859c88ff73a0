// minfer plugin SDK: the element types of weights as data. Block formats are those of the GGUF specification: a row is a whole
// number of blocks, each with its own scales. C++17, no dependencies.
#ifndef MINFER_PLUGIN_DTYPE_HPP_
#define MINFER_PLUGIN_DTYPE_HPP_

#include "minfer/plugin/namespace.hpp"

MINFER_SDK_BEGIN

struct DTypeInfo {
  uint32_t dtype;  // MI_TYPE_*
  const char* name;
  uint32_t block_elements;
  uint32_t block_bytes;
};

inline constexpr DTypeInfo kDTypes[] = {
    {MI_TYPE_F32, "F32", 1, 4},       {MI_TYPE_F16, "F16", 1, 2},       {MI_TYPE_Q4_0, "Q4_0", 32, 18},   {MI_TYPE_Q4_1, "Q4_1", 32, 20},
    {MI_TYPE_Q5_0, "Q5_0", 32, 22},   {MI_TYPE_Q5_1, "Q5_1", 32, 24},   {MI_TYPE_Q8_0, "Q8_0", 32, 34},   {MI_TYPE_Q2_K, "Q2_K", 256, 84},
    {MI_TYPE_Q3_K, "Q3_K", 256, 110}, {MI_TYPE_Q4_K, "Q4_K", 256, 144}, {MI_TYPE_Q5_K, "Q5_K", 256, 176}, {MI_TYPE_Q6_K, "Q6_K", 256, 210},
    {MI_TYPE_I32, "I32", 1, 4},       {MI_TYPE_BF16, "BF16", 1, 2},
};

// nullptr for a type this header does not know.
constexpr const DTypeInfo* find_dtype(uint32_t dtype) {
  for (const DTypeInfo& info : kDTypes)
    if (info.dtype == dtype) return &info;
  return nullptr;
}

// Bytes of a row of n elements; 0 where the type is unknown, n is no whole number of blocks, or the size overflows.
constexpr uint64_t row_bytes(uint32_t dtype, uint64_t n) {
  const DTypeInfo* info = find_dtype(dtype);
  if (!info || n % info->block_elements != 0) return 0;
  const uint64_t blocks = n / info->block_elements;
  return blocks > UINT64_MAX / info->block_bytes ? 0 : blocks * info->block_bytes;
}

MINFER_SDK_END

#endif
