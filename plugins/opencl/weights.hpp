// The weights of one model on the device: matrices and embeddings as tiles (gguf_tiles.hpp), vectors as f32.
#pragma once

#include "gguf_tiles.hpp"
#include "opencl_context.hpp"

namespace minfer::opencl {

struct Weight {
  uint32_t dtype = 0;
  uint64_t n_rows = 0;  // outputs; 1 for a vector
  uint64_t n_cols = 0;
  Mem tiles;                  // where it is multiplied with or looked up
  Mem vector;                 // [n_cols] f32, where it is a vector
  std::vector<float> values;  // of a vector, for tables that the host makes from it
};

class OpenclWeights final : public sdk::Weights {
 public:
  // Throws sdk::Error for a type or shape that `supports` would have refused, or when the device's memory does not suffice.
  OpenclWeights(const sdk::WeightList& list, const Context& context);

  uint64_t own_bytes() const noexcept override { return bytes_; }
  // nullptr for an id that was not imported.
  const Weight* find(uint32_t id) const { return id < weights_.size() && weights_[id].n_cols > 0 ? &weights_[id] : nullptr; }

 private:
  std::vector<Weight> weights_;  // by id
  uint64_t bytes_ = 0;
};

// True where this backend can hold a matrix or a vector of that type and shape.
bool weight_supported(const mi_value& value);

}  // namespace minfer::opencl
