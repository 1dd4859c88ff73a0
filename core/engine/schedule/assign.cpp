#include "engine/schedule/assign.hpp"

namespace minfer {

std::vector<uint32_t> assign(const Graph& graph, const Placement& placement) {
  std::vector<uint32_t> node_device;
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kKvStore || node.op == Op::kAttention || node.op == Op::kFusedQkv) {
      node_device.push_back(placement.kv_device[node.layer]);
      continue;
    }
    uint32_t device = kNone;
    for (ValueId id : node.inputs)
      if (device == kNone && node.op != Op::kRope && id != kNone && graph.values[id].kind == ValueKind::kWeight)
        device = placement.weight_device[graph.values[id].index];
    if (device == kNone) {
      const auto moved = placement.weightless_device.find({node.layer, node.op});
      device = moved == placement.weightless_device.end() ? placement.device_of(node.layer) : moved->second;
    }
    node_device.push_back(device);
  }
  return node_device;
}

}  // namespace minfer
