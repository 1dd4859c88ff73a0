#include "engine/graph/graph_builder.hpp"

namespace minfer {
namespace {

// Shape of each graph input: a pure function of the parameters.
Shape input_shape(InputKind kind, const GraphParams& params) {
  switch (kind) {
    case InputKind::kTokenIds:
    case InputKind::kPositions:
    case InputKind::kRowSeq: return {params.n_tokens};
    case InputKind::kBlockTable: return {params.cparams.blocks_per_seq(), params.cparams.max_seqs};
    case InputKind::kOutRows:
    case InputKind::kOutPositions:
    case InputKind::kOutRowSeq: return {params.n_out};
  }
  return {};
}

}  // namespace

GraphParams make_graph_params(uint32_t n_tokens, uint32_t n_out, const CParams& cparams, uint64_t weights_version) {
  return {n_tokens, n_out, n_tokens == 1 ? GraphType::kDecode : GraphType::kPrefill, cparams, weights_version};
}

Status GraphBuilder::fail(Error error) {
  if (!error_) error_ = std::move(error);
  return *error_;
}

Result<ValueId> GraphBuilder::input(InputKind kind) {
  if (error_) return *error_;
  const auto index = static_cast<uint32_t>(kind);
  if (index >= kInputKinds) return fail(unsupported("graph input kind {} is not known", index)).error();
  for (ValueId id : graph_.inputs)
    if (graph_.values[id].index == index) return id;
  Value value;
  value.kind = ValueKind::kInput;
  value.dtype = DType::kI32;
  value.shape = input_shape(kind, params_);
  value.index = index;
  if (value.shape.elements() == 0) return fail(invalid("graph input {} has no entries here", input_name(kind))).error();
  graph_.values.push_back(value);
  graph_.inputs.push_back(static_cast<ValueId>(graph_.values.size() - 1));
  return graph_.inputs.back();
}

Result<ValueId> GraphBuilder::weight(uint32_t weight_id) {
  if (error_) return *error_;
  if (weight_id >= weights_.size()) return fail(invalid("weight {} does not exist, the model has {}", weight_id, weights_.size())).error();
  for (ValueId id = 0; id < graph_.values.size(); ++id)
    if (graph_.values[id].kind == ValueKind::kWeight && graph_.values[id].index == weight_id) return id;
  Value value;
  value.kind = ValueKind::kWeight;
  value.dtype = weights_[weight_id].dtype;
  value.shape = weights_[weight_id].shape;
  value.index = weight_id;
  graph_.values.push_back(value);
  return static_cast<ValueId>(graph_.values.size() - 1);
}

Result<std::vector<ValueId>> GraphBuilder::add_node(Op op, uint32_t layer, std::span<const ValueId> inputs, const OpAttrs& attrs,
                                                    const Shape& view_shape) {
  if (error_) return *error_;
  Node node{op, layer, {inputs.begin(), inputs.end()}, {}, attrs};
  auto shapes = infer_shapes(graph_, node, view_shape);
  if (!shapes.ok()) return fail(shapes.error()).error();
  const auto id = static_cast<NodeId>(graph_.nodes.size());
  for (const Shape& shape : *shapes) {
    Value value;
    value.shape = shape;
    value.producer = id;
    if (op == Op::kView) {
      value.alias_of = node.inputs[0];
      value.alias_offset = attrs.view_offset * 4;
    }
    node.outputs.push_back(static_cast<ValueId>(graph_.values.size()));
    graph_.values.push_back(value);
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

Status GraphBuilder::output(ValueId value) {
  if (error_) return *error_;
  if (value >= graph_.values.size() || graph_.values[value].kind != ValueKind::kActivation)
    return fail(invalid("graph output {} is not an activation", value));
  graph_.outputs.push_back(value);
  return {};
}

Result<Graph> GraphBuilder::finish() {
  if (error_) return *error_;
  MINFER_TRY(validate(graph_));
  return std::move(graph_);
}

}  // namespace minfer
