// Graphviz text of a graph: left to right, one record per node, inputs and outputs as double circles, one colour per device.
#include <map>

#include "engine/graph/graph.hpp"

namespace minfer {

std::string dump_dot(const Graph& graph, const std::vector<std::string>& node_device) {
  constexpr std::string_view kColours[] = {"lightyellow", "lightblue", "lightgreen", "lightpink", "lavender"};
  std::map<std::string, std::string_view> colour_of;
  for (const std::string& device : node_device) colour_of.emplace(device, kColours[colour_of.size() % std::size(kColours)]);

  std::string out = "digraph G {\n  rankdir=LR;\n  node [shape=record, style=filled, fillcolor=white];\n";
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[id];
    out +=
        text("  v{} [shape=doublecircle, label=\"{}\\n{}\"];\n", id, input_name(static_cast<InputKind>(value.index)), value.shape.text());
  }
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    std::string label = text("{}: {}", n, op_info(node.op).name);
    if (node.layer < kOutputLayer) label += text("|layer {}", node.layer);
    for (ValueId id : node.outputs) label += text("|{}", graph.values[id].shape.text());
    std::string_view colour = "white";
    if (n < node_device.size()) {
      label += "|" + node_device[n];
      colour = colour_of[node_device[n]];
    }
    out += text("  n{} [label=\"{}\", fillcolor={}];\n", n, label, colour);
    for (ValueId id : node.inputs) {
      if (id == kNone) continue;
      const Value& value = graph.values[id];
      if (value.kind == ValueKind::kActivation) out += text("  n{} -> n{};\n", value.producer, n);
      if (value.kind == ValueKind::kInput) out += text("  v{} -> n{};\n", id, n);
    }
  }
  for (ValueId id : graph.outputs) {
    out += text("  o{} [shape=doublecircle, label=\"output\\n{}\"];\n  n{} -> o{};\n", id, graph.values[id].shape.text(),
                graph.values[id].producer, id);
  }
  return out + "}\n";
}

}  // namespace minfer
