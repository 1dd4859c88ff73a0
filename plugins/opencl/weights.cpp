#include "weights.hpp"

#include <algorithm>

#include "minfer/plugin/dtype.hpp"

namespace minfer::opencl {
namespace {

constexpr uint64_t kStagingBytes = uint64_t{8} << 20;

// Repacks some groups of rows at a time, so that no second copy of a large matrix exists.
Mem upload_tiles(const mi_weight& weight, uint64_t n_rows, const Context& context) {
  const uint64_t n_cols = weight.dims[0], groups = (n_rows + kTileRows - 1) / kTileRows;
  const uint64_t group_bytes = tile_group_bytes(weight.dtype, n_cols), row_bytes = sdk::row_bytes(weight.dtype, n_cols);
  Mem mem = context.alloc(groups * group_bytes, "a weight");
  const uint64_t at_once = std::clamp<uint64_t>(kStagingBytes / group_bytes, 1, groups);
  std::vector<std::byte> staging(at_once * group_bytes);
  for (uint64_t begin = 0; begin < groups; begin += at_once) {
    const uint64_t end = std::min(begin + at_once, groups);
    for (uint64_t g = begin; g < end; ++g)
      make_tiles(weight.dtype, static_cast<const std::byte*>(weight.data) + g * kTileRows * row_bytes,
                 std::min(n_rows - g * kTileRows, kTileRows), n_cols, staging.data() + (g - begin) * group_bytes);
    context.write(mem.get(), begin * group_bytes, staging.data(), (end - begin) * group_bytes);
  }
  return mem;
}

}  // namespace

bool weight_supported(const mi_value& value) {
  return weight_form(value.dtype) && value.dims[0] > 0 && value.dims[0] < (uint64_t{1} << 31) &&
         sdk::row_bytes(value.dtype, value.dims[0]) > 0;
}

OpenclWeights::OpenclWeights(const sdk::WeightList& list, const Context& context) {
  for (uint32_t i = 0; i < list.size(); ++i) {
    const mi_weight& weight = list[i];
    const std::string_view name = sdk::from_abi(weight.name);
    const uint64_t n_cols = weight.dims[0], n_rows = weight.dims[1] * weight.dims[2] * weight.dims[3];
    if (!weight_form(weight.dtype)) sdk::fail(MI_UNSUPPORTED, "tensor type ", weight.dtype, " of ", name);
    const uint64_t row_bytes = sdk::row_bytes(weight.dtype, n_cols);
    if (row_bytes == 0 || n_rows == 0 || weight.size_bytes / row_bytes < n_rows)
      sdk::fail(MI_INVALID_ARGUMENT, "tensor ", name, ": ", weight.size_bytes, " bytes do not hold ", n_rows, " rows of ", n_cols);
    if (weight.id >= weights_.size()) weights_.resize(weight.id + 1);
    Weight& mine = weights_[weight.id];
    mine.dtype = weight.dtype;
    mine.n_rows = n_rows;
    mine.n_cols = n_cols;
    if (weight.roles & MI_ROLE_VECTOR) {
      mine.values.resize(n_cols);
      row_to_floats(weight.dtype, weight.data, n_cols, mine.values.data());
      mine.vector = context.alloc_with(mine.values.data(), n_cols * sizeof(float), "a weight");
      bytes_ += n_cols * sizeof(float);
    }
    if (weight.roles & ~MI_ROLE_VECTOR) {
      mine.tiles = upload_tiles(weight, n_rows, context);
      bytes_ += (n_rows + kTileRows - 1) / kTileRows * tile_group_bytes(weight.dtype, n_cols);
    }
    list.source_done(weight.id);
  }
}

}  // namespace minfer::opencl
