// The weights of one model on the cpu device: matrices packed into the kernels' layout, vectors as f32, embeddings that are
// only looked up left in the model file.
#pragma once

#include <vector>

#include "kernels/weight_layout.hpp"
#include "memory.hpp"
#include "minfer/plugin/backend.hpp"
#include "thread_team.hpp"

namespace minfer::cpu {

struct CpuWeight {
  WeightType type = WeightType::kF32;
  size_t rows = 0;  // outputs; 1 for a vector
  size_t cols = 0;
  const std::byte* packed = nullptr;  // matrices; null where the weight is only looked up
  const std::byte* source = nullptr;  // row-major GGUF rows, where packed is null
  const float* vector = nullptr;      // [cols], vectors only

  // Row `row` as f32, for GET_ROWS.
  void look_up(size_t row, float* out) const;
};

class CpuWeights final : public sdk::Weights {
 public:
  // Packs on all threads of the team. Throws sdk::Error for a type or shape that `supports` would have refused.
  CpuWeights(const sdk::WeightList& list, ThreadTeam& team);

  uint64_t own_bytes() const noexcept override { return memory_.size() + vectors_.size() * sizeof(float); }
  const CpuWeight& operator[](uint32_t id) const { return weights_[id]; }
  const CpuWeight* find(uint32_t id) const { return id < weights_.size() ? &weights_[id] : nullptr; }  // of an id from outside

 private:
  std::vector<CpuWeight> weights_;  // by id
  PageMemory memory_;
  std::vector<float> vectors_;
};

// True where this backend can hold a matrix or a vector of that type and shape.
bool weight_supported(const mi_value& value);

}  // namespace minfer::cpu
