#include <set>

#include "engine/graph/graph_builder.hpp"

namespace minfer {
namespace {

Status validate_value(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  switch (value.kind) {
    case ValueKind::kInput:
      if (value.index >= kInputKinds) return invalid("value {}: graph input kind {} is not known", id, value.index);
      return {};
    case ValueKind::kWeight: return {};
    case ValueKind::kActivation:
      if (value.producer >= graph.nodes.size()) return invalid("value {}: no node makes it", id);
      if (value.alias_of != kNone && (value.alias_of >= id || graph.values[value.alias_of].kind != ValueKind::kActivation))
        return invalid("value {}: is a view of {}, which is no earlier activation", id, value.alias_of);
      return {};
  }
  return invalid("value {}: unknown kind", id);
}

}  // namespace

Status validate(const Graph& graph) {
  for (ValueId id = 0; id < graph.values.size(); ++id) MINFER_TRY(validate_value(graph, id));
  std::set<uint32_t> stored_layers;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const std::string place = text("node {}", n);
    for (ValueId id : node.inputs) {
      if (id == kNone || id >= graph.values.size()) continue;  // judged by infer_shapes
      const Value& value = graph.values[id];
      // Order is what rules out cycles: a source must have a smaller node id.
      if (value.kind == ValueKind::kActivation && value.producer >= n)
        return invalid("{} reads value {} before node {} makes it", place, id, value.producer);
    }
    Shape view_shape;
    if (node.op == Op::kView && node.outputs.size() == 1 && node.outputs[0] < graph.values.size())
      view_shape = graph.values[node.outputs[0]].shape;
    auto shapes = infer_shapes(graph, node, view_shape);
    if (!shapes.ok()) return shapes.error().in(place);
    if (shapes->size() != node.outputs.size()) return invalid("{}: has {} outputs, expects {}", place, node.outputs.size(), shapes->size());
    for (size_t i = 0; i < shapes->size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id >= graph.values.size() || graph.values[id].kind != ValueKind::kActivation || graph.values[id].producer != n)
        return invalid("{}: output {} is not its own value", place, i);
      const bool is_view = node.op == Op::kView;
      if (graph.values[id].alias_of != (is_view ? node.inputs[0] : kNone) ||
          graph.values[id].alias_offset != (is_view ? node.attrs.view_offset * 4 : 0))
        return invalid("{}: output {} does not share the memory that its operation says", place, i);
      if (graph.values[id].shape != (*shapes)[i])
        return invalid("{}: output {} has shape {}, expects {}", place, i, graph.values[id].shape.text(), (*shapes)[i].text());
    }
    if (node.op == Op::kKvStore || node.op == Op::kFusedQkv) stored_layers.insert(node.layer);
    if (node.op == Op::kAttention && !stored_layers.count(node.layer))
      return invalid("{}: attention of layer {} comes before that layer's KV store", place, node.layer);
  }
  for (ValueId id : graph.outputs)
    if (id >= graph.values.size() || graph.values[id].kind != ValueKind::kActivation)
      return invalid("graph output {} is not an activation", id);
  return {};
}

}  // namespace minfer
