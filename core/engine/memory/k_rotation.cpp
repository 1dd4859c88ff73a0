#include "engine/memory/k_rotation.hpp"

namespace minfer {
namespace {

bool is_positions(const Graph& graph, ValueId id) {
  if (id == kNone) return false;
  const Value& value = graph.values[graph.alias_root(id)];
  return value.kind == ValueKind::kInput &&
         (value.index == static_cast<uint32_t>(InputKind::kPositions) || value.index == static_cast<uint32_t>(InputKind::kOutPositions));
}

}  // namespace

Result<std::vector<KvRotation>> find_k_rotations(const Graph& graph, uint32_t n_layers, const Placement& placement) {
  std::vector<KvRotation> rotations(n_layers);
  std::vector<bool> found(n_layers, false);
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kRope && node.op != Op::kKvStore && node.op != Op::kAttention && node.op != Op::kView)
      for (const ValueId input : node.inputs)
        if (is_positions(graph, input))
          return unsupported("layer {}: {} reads positions, which only a rotation may do where a context is shifted", node.layer,
                             op_info(node.op).name);
    if (node.op != Op::kKvStore) continue;
    const NodeId producer = graph.values[graph.alias_root(node.inputs[0])].producer;
    const Node* rope = producer == kNone ? nullptr : &graph.nodes[producer];
    if (!rope || rope->op != Op::kRope || rope->inputs[1] != node.inputs[2] || rope->attrs.head_dim != node.attrs.head_dim)
      return unsupported("layer {}: its keys are stored from {}, not from a rotation by their positions, so a context cannot be shifted",
                         node.layer, rope ? op_info(rope->op).name : "an input");
    KvRotation& rotation = rotations[node.layer];
    rotation.rope = rope->attrs;
    if (rope->inputs.size() > 2 && rope->inputs[2] != kNone) {
      rotation.freq_factors = graph.values[rope->inputs[2]].index;
      if (!placement.holds(placement.kv_device[node.layer], rotation.freq_factors))
        return unsupported("layer {}: its KV and its frequency factors are on different devices, so a context cannot be shifted",
                           node.layer);
    }
    found[node.layer] = true;
  }
  for (uint32_t layer = 0; layer < n_layers; ++layer)
    if (!found[layer]) return unsupported("layer {} stores no keys, so a context cannot be shifted", layer);
  return rotations;
}

}  // namespace minfer
