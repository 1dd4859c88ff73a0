#include "weights.hpp"

#include <atomic>

namespace minfer::cpu {
namespace {

uint64_t rows_of(const mi_weight& weight) { return weight.dims[1] * weight.dims[2] * weight.dims[3]; }

bool is_packed(const mi_weight& weight) { return (weight.roles & MI_ROLE_MATRIX) != 0; }

}  // namespace

bool weight_supported(const mi_value& value) {
  if (!weight_type_known(value.dtype)) return false;
  return value.dims[0] > 0 && value.dims[0] % weight_block_cols(static_cast<WeightType>(value.dtype)) == 0;
}

void CpuWeight::look_up(size_t row, float* out) const {
  if (packed)
    dequantize_row(type, packed, cols, row, out);
  else
    dequantize_row_gguf(type, source + row * gguf_row_bytes(type, cols), cols, out);
}

CpuWeights::CpuWeights(const sdk::WeightList& list, ThreadTeam& team) {
  uint64_t packed_bytes = 0;
  size_t vector_elements = 0;
  for (uint32_t i = 0; i < list.size(); ++i) {
    const mi_weight& weight = list[i];
    if (!weight_type_known(weight.dtype)) sdk::fail(MI_UNSUPPORTED, "tensor type ", weight.dtype, " of ", sdk::from_abi(weight.name));
    if (weight.id >= weights_.size()) weights_.resize(weight.id + 1);
    CpuWeight& mine = weights_[weight.id];
    mine.type = static_cast<WeightType>(weight.dtype);
    mine.cols = weight.dims[0];
    mine.rows = rows_of(weight);
    if (mine.cols == 0 || mine.cols % weight_block_cols(mine.type) != 0 ||
        weight.size_bytes < mine.rows * gguf_row_bytes(mine.type, mine.cols))
      sdk::fail(MI_INVALID_ARGUMENT, "tensor ", sdk::from_abi(weight.name), ": ", weight.size_bytes, " bytes do not hold ", mine.rows,
                " rows of ", mine.cols);
    if (is_packed(weight))
      packed_bytes += group_count(mine.rows) * packed_group_bytes(mine.type, mine.cols);
    else if (weight.roles & MI_ROLE_VECTOR)
      vector_elements += mine.cols;
  }
  memory_ = PageMemory(packed_bytes);
  vectors_.resize(vector_elements);

  std::byte* next_packed = memory_.data();
  float* next_vector = vectors_.data();
  for (uint32_t i = 0; i < list.size(); ++i) {
    const mi_weight& weight = list[i];
    CpuWeight& mine = weights_[weight.id];
    mine.source = static_cast<const std::byte*>(weight.data);
    if (is_packed(weight)) {
      std::byte* packed = next_packed;
      const size_t groups = group_count(mine.rows);
      next_packed += groups * packed_group_bytes(mine.type, mine.cols);
      std::atomic<size_t> next_chunk{0};
      const size_t chunk = 16;
      team.run([&](unsigned) {
        for (size_t begin; (begin = next_chunk.fetch_add(chunk)) < groups;)
          pack_groups(mine.type, mine.source, mine.rows, mine.cols, begin, std::min(begin + chunk, groups), packed);
      });
      mine.packed = packed;
      mine.source = nullptr;
      list.source_done(weight.id);
    } else if (weight.roles & MI_ROLE_VECTOR) {
      dequantize_row_gguf(mine.type, mine.source, mine.cols, next_vector);
      mine.vector = next_vector;
      mine.source = nullptr;
      next_vector += mine.cols;
      list.source_done(weight.id);
    }
  }
}

}  // namespace minfer::cpu
