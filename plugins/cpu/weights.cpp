#include "weights.hpp"

#include <algorithm>

namespace minfer::cpu {
namespace {

uint64_t rows_of(const mi_weight& weight) { return weight.dims[1] * weight.dims[2] * weight.dims[3]; }

bool is_packed(const mi_weight& weight) { return (weight.roles & MI_ROLE_MATRIX) != 0; }

}  // namespace

bool weight_supported(const mi_value& value) {
  if (!weight_type_known(value.dtype)) return false;
  return value.dims[0] > 0 && value.dims[0] % weight_block_cols(static_cast<WeightType>(value.dtype)) == 0;
}

CpuWeight::PackedGroups CpuWeight::use(const MatmulKernels& kernels, size_t begin, size_t end, std::byte* scratch) const {
  const Group state = groups[begin].load(std::memory_order_acquire);
  if (state == Group::kPacked) {
    size_t n = 1;
    while (begin + n < end && groups[begin + n].load(std::memory_order_acquire) == Group::kPacked) ++n;
    return {packed + begin * group_bytes(), begin + n};
  }
  // One at a time: it is multiplied while it is in cache.
  const bool for_good = state == Group::kUsedOnce;
  std::byte* const base = for_good ? packed : scratch - begin * group_bytes();
  kernels.pack(type, source, rows, cols, begin, begin + 1, base);
  groups[begin].store(for_good ? Group::kPacked : Group::kUsedOnce, std::memory_order_release);
  return {base + begin * group_bytes(), begin + 1};
}

void CpuWeight::look_up(size_t row, float* out) const {
  if (groups && groups[row / kGroupRows].load(std::memory_order_acquire) == Group::kPacked)
    dequantize_row(type, packed, cols, row, out);
  else
    dequantize_row_gguf(type, source + row * gguf_row_bytes(type, cols), cols, out);
}

CpuWeights::CpuWeights(const sdk::WeightList& list) : source_done_(list.source_done()) {
  uint64_t packed_bytes = 0;
  size_t n_groups = 0, vector_elements = 0;
  for (uint32_t i = 0; i < list.size(); ++i) {
    const mi_weight& weight = list[i];
    if (!weight_type_known(weight.dtype)) sdk::fail(MI_UNSUPPORTED, "tensor type ", weight.dtype, " of ", sdk::from_abi(weight.name));
    if (weight.id >= weights_.size()) weights_.resize(weight.id + 1);
    CpuWeight& mine = weights_[weight.id];
    mine.type = static_cast<WeightType>(weight.dtype);
    mine.cols = weight.dims[0];
    mine.rows = rows_of(weight);
    mine.source = static_cast<const std::byte*>(weight.data);
    if (mine.cols == 0 || mine.cols % weight_block_cols(mine.type) != 0 ||
        weight.size_bytes < mine.rows * gguf_row_bytes(mine.type, mine.cols))
      sdk::fail(MI_INVALID_ARGUMENT, "tensor ", sdk::from_abi(weight.name), ": ", weight.size_bytes, " bytes do not hold ", mine.rows,
                " rows of ", mine.cols);
    if (is_packed(weight)) {
      n_groups += group_count(mine.rows);
      packed_bytes += group_count(mine.rows) * mine.group_bytes();
    } else if (weight.roles & MI_ROLE_VECTOR) {
      vector_elements += mine.cols;
    }
  }
  memory_ = PageMemory(packed_bytes);
  groups_ = std::make_unique<std::atomic<CpuWeight::Group>[]>(n_groups);
  vectors_.resize(vector_elements);

  std::byte* next_packed = memory_.data();
  std::atomic<CpuWeight::Group>* next_group = groups_.get();
  float* next_vector = vectors_.data();
  for (uint32_t i = 0; i < list.size(); ++i) {
    const mi_weight& weight = list[i];
    CpuWeight& mine = weights_[weight.id];
    if (is_packed(weight)) {
      mine.packed = next_packed;
      mine.groups = next_group;
      next_packed += group_count(mine.rows) * mine.group_bytes();
      next_group += group_count(mine.rows);
      pending_.push_back({weight.id, 0});
    } else if (weight.roles & MI_ROLE_VECTOR) {
      dequantize_row_gguf(mine.type, mine.source, mine.cols, next_vector);
      mine.vector = next_vector;
      next_vector += mine.cols;
      source_done_(weight.id);
    }
  }
}

void CpuWeights::report_packed() {
  const auto is_done = [this](Pending& entry) {
    const CpuWeight& weight = weights_[entry.id];
    const size_t n_groups = group_count(weight.rows);
    while (entry.n_packed < n_groups && weight.groups[entry.n_packed].load(std::memory_order_acquire) == CpuWeight::Group::kPacked)
      ++entry.n_packed;
    if (entry.n_packed < n_groups) return false;
    source_done_(entry.id);
    return true;
  };
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(), is_done), pending_.end());
}

}  // namespace minfer::cpu
