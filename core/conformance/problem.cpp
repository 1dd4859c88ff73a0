#include "conformance/problem.hpp"

#include "engine/graph/graph_builder.hpp"

namespace minfer::conformance {

ValueId Problem::add(Value value) {
  graph_.values.push_back(value);
  return static_cast<ValueId>(graph_.values.size() - 1);
}

ValueId Problem::source(const Shape& shape, std::vector<float> data) {
  Value value;
  value.shape = shape;
  value.producer = kNone;  // not of this device
  const ValueId id = add(value);
  sources_[id] = std::move(data);
  return id;
}

ValueId Problem::input(InputKind kind, const Shape& shape, std::vector<int32_t> data) {
  Value value;
  value.kind = ValueKind::kInput;
  value.dtype = DType::kI32;
  value.shape = shape;
  value.index = static_cast<uint32_t>(kind);
  const ValueId id = add(value);
  graph_.inputs.push_back(id);
  set(kind, std::move(data));
  return id;
}

ValueId Problem::weight(Tensor tensor) {
  Value value;
  value.kind = ValueKind::kWeight;
  value.dtype = static_cast<DType>(tensor.dtype);
  value.shape = tensor.shape;
  value.index = static_cast<uint32_t>(tensors_.size());
  tensors_.push_back(std::move(tensor));
  return add(value);
}

ValueId Problem::node(Op op, std::vector<ValueId> inputs, const OpAttrs& attrs, uint32_t layer) {
  Node node{op, layer, std::move(inputs), {}, attrs};
  const auto shapes = infer_shapes(graph_, node, {});
  if (!shapes.ok()) {
    if (!error_) error_ = shapes.error();
    return 0;
  }
  for (const ValueId id : node.inputs) read_.insert(id);
  const auto number = static_cast<NodeId>(graph_.nodes.size());
  for (const Shape& shape : *shapes) {
    Value value;
    value.shape = shape;
    value.producer = number;
    node.outputs.push_back(add(value));
  }
  nodes_.push_back(number);
  const ValueId out = node.outputs.empty() ? kNone : node.outputs[0];
  graph_.nodes.push_back(std::move(node));
  return out;
}

ValueId Problem::unchecked_node(Op op, std::vector<ValueId> inputs, const OpAttrs& attrs, const Shape& out) {
  const auto number = static_cast<NodeId>(graph_.nodes.size());
  Value value;
  value.shape = out;
  value.producer = number;
  const ValueId id = add(value);
  for (const ValueId input : inputs) read_.insert(input);
  graph_.nodes.push_back({op, 0, std::move(inputs), {id}, attrs});
  nodes_.push_back(number);
  return id;
}

bool Problem::is_kept(ValueId value) const {
  return graph_.values[value].kind == ValueKind::kActivation && !sources_.count(value) && (kept_.count(value) || !read_.count(value));
}

std::optional<ValueId> Problem::placed_over(ValueId value) const {
  const auto found = place_over_.find(value);
  if (found == place_over_.end()) return std::nullopt;
  return found->second;
}

}  // namespace minfer::conformance
