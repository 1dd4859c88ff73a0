// Builds a Graph append-only: sources before consumers, shapes inferred and checked at each call. The first error sticks.
#pragma once

#include <span>

#include "engine/graph/graph.hpp"
#include "engine/reuse/graph_params.hpp"

namespace minfer {

// A weight as graphs see it: the shape and type that the model file holds, or a constant of the architecture.
struct WeightInfo {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint32_t roles = 0;  // WeightRole bits
  uint32_t layer = 0;
  std::vector<float> values{};  // of a constant, which is f32; empty: the file holds the weight
  friend bool operator==(const WeightInfo&, const WeightInfo&) = default;
};
enum WeightRole : uint32_t { kRoleMatrix = 1, kRoleVector = 2, kRoleEmbedding = 4, kRoleOutput = 8 };

class GraphBuilder {
 public:
  // `weights` must outlive the builder.
  GraphBuilder(const GraphParams& params, std::span<const WeightInfo> weights) : params_(params), weights_(weights) {}

  // The same kind or id twice yields the same value.
  Result<ValueId> input(InputKind kind);
  Result<ValueId> weight(uint32_t weight_id);
  // view_shape is read by kView only.
  Result<std::vector<ValueId>> add_node(Op op, uint32_t layer, std::span<const ValueId> inputs, const OpAttrs& attrs,
                                        const Shape& view_shape = {});
  Status output(ValueId value);

  Result<Graph> finish();

 private:
  Status fail(Error error);

  GraphParams params_;
  std::span<const WeightInfo> weights_;
  Graph graph_;
  std::optional<Error> error_;
};

// The output shapes of a node, or why its inputs do not fit. Shared by the builder and validate().
Result<std::vector<Shape>> infer_shapes(const Graph& graph, const Node& node, const Shape& view_shape);

}  // namespace minfer
