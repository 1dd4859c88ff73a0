// What the engine asks of a model architecture. core/plugin implements it over minfer/abi/arch.h; tests directly.
#pragma once

#include <vector>

#include "engine/graph/graph_builder.hpp"

namespace minfer {

struct ModelInfo {
  uint32_t n_layers = 0;
  uint32_t n_embd = 0;
  uint32_t n_vocab = 0;
  uint32_t n_ctx_train = 0;
  uint32_t n_head_kv = 0;
  uint32_t head_dim = 0;
};

// A model whose hyper-parameters are validated. Immutable; used from one thread at a time.
class ModelArchitecture {
 public:
  virtual ~ModelArchitecture() = default;
  virtual const ModelInfo& info() const = 0;
  // What graphs refer to, by weight id. Shapes and roles are the architecture's, dtype is filled from the file, where it is not a constant.
  virtual const std::vector<WeightInfo>& weights() const = 0;
  // Pure and deterministic: equal params give equal graphs. Builds from params.n_tokens and params.n_out alone.
  virtual Status build(const GraphParams& params, GraphBuilder& builder) = 0;
};

// The one way to a graph: builds, validates, and refuses KV operations that do not fit the model's layers and heads.
Result<Graph> build_graph(ModelArchitecture& architecture, const GraphParams& params);

}  // namespace minfer
