// The weights of one model on the cpu device: matrices packed into the kernels' layout, vectors as f32, embeddings that are
// only looked up left in the model file.
//
// Loading does not pack: the first token would wait for it, mostly for the system to find that much memory. The first product with a
// group of rows packs it into scratch memory that stays in cache, the second one packs it for good.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "kernels/matmul.hpp"
#include "memory.hpp"
#include "minfer/plugin/backend.hpp"

namespace minfer::cpu {

struct CpuWeight {
  WeightType type = WeightType::kF32;
  size_t rows = 0;  // outputs; 1 for a vector
  size_t cols = 0;
  const std::byte* source = nullptr;  // row-major GGUF rows; matrices: of the groups that are not packed
  const float* vector = nullptr;      // [cols], vectors only
  std::byte* packed = nullptr;        // matrices only: room for all groups
  enum class Group : uint8_t { kUnused, kUsedOnce, kPacked };
  std::atomic<Group>* groups = nullptr;  // matrices only: state of each group. One thread at a time works on a group

  size_t group_bytes() const { return packed_group_bytes(type, cols); }

  struct PackedGroups {
    const std::byte* first;  // of the group asked for
    size_t end;              // behind the last one that follows it there
  };
  // For a product: the group `begin`, and of those behind it, up to `end`, as many as lie packed behind it. `scratch` has room for
  // group_bytes(), 64-byte aligned.
  PackedGroups use(const MatmulKernels& kernels, size_t begin, size_t end, std::byte* scratch) const;

  // Row `row` as f32, for GET_ROWS.
  void look_up(size_t row, float* out) const;
};

class CpuWeights final : public sdk::Weights {
 public:
  // Throws sdk::Error for a type or shape that `supports` would have refused.
  explicit CpuWeights(const sdk::WeightList& list);

  // Tells the host which weights have come to be packed as a whole. From one thread, inside a run or an import.
  void report_packed();

  uint64_t own_bytes() const noexcept override { return memory_.size() + vectors_.size() * sizeof(float); }
  const CpuWeight& operator[](uint32_t id) const { return weights_[id]; }
  const CpuWeight* find(uint32_t id) const { return id < weights_.size() ? &weights_[id] : nullptr; }  // of an id from outside

 private:
  struct Pending {
    uint32_t id;
    size_t n_packed;  // leading groups known to be packed
  };

  sdk::SourceDone source_done_;
  std::vector<CpuWeight> weights_;  // by id
  std::vector<Pending> pending_;    // matrices whose source is still read
  PageMemory memory_;
  std::unique_ptr<std::atomic<CpuWeight::Group>[]> groups_;
  std::vector<float> vectors_;
};

// True where this backend can hold a matrix or a vector of that type and shape.
bool weight_supported(const mi_value& value);

}  // namespace minfer::cpu
