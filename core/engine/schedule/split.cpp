#include "engine/schedule/split.hpp"

#include <set>

namespace minfer {

std::vector<Split> split_graph(const Graph& graph, const std::vector<uint32_t>& node_device, bool observe) {
  const std::vector<bool> live = graph.live_nodes();
  std::vector<Split> splits;
  std::set<std::pair<ValueId, uint32_t>> present;  // root value, device that holds it
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!live[n] || node.op == Op::kView) continue;
    const uint32_t device = node_device[n];
    if (splits.empty() || splits.back().device != device || observe) splits.push_back({device, {}, {}});
    Split& split = splits.back();
    split.nodes.push_back(n);
    for (ValueId id : node.inputs) {
      if (id == kNone || graph.values[id].kind != ValueKind::kActivation) continue;
      const ValueId root = graph.alias_root(id);
      if (!present.insert({root, device}).second) continue;
      split.copies.push_back({root, node_device[graph.values[root].producer]});
    }
    for (ValueId id : node.outputs) present.insert({id, device});
  }
  return splits;
}

}  // namespace minfer
