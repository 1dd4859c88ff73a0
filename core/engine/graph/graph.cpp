#include "engine/graph/graph.hpp"

#include <cassert>

namespace minfer {

Shape::Shape(std::initializer_list<uint64_t> list) : n_dims(0) {
  assert(list.size() >= 1 && list.size() <= 4);
  for (uint64_t dim : list) dims[n_dims++] = dim;
}

std::string Shape::text() const {
  std::string out = "[";
  for (uint32_t i = 0; i < n_dims; ++i) {
    if (i) out += ", ";
    out += std::to_string(dims[i]);
  }
  return out + "]";
}

std::string_view input_name(InputKind kind) {
  constexpr std::string_view kNames[kInputKinds] = {"token_ids", "positions",     "row_seq",    "block_table",
                                                    "out_rows",  "out_positions", "out_row_seq"};
  return kNames[static_cast<uint32_t>(kind)];
}

ValueId Graph::alias_root(ValueId id, uint64_t* offset_bytes) const {
  uint64_t offset = 0;
  while (values[id].alias_of != kNone) {
    offset += values[id].alias_offset;
    id = values[id].alias_of;
  }
  if (offset_bytes) *offset_bytes = offset;
  return id;
}

std::vector<bool> Graph::live_nodes() const {
  std::vector<bool> wanted(values.size(), false);
  for (ValueId id : outputs) wanted[id] = true;
  std::vector<bool> live(nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = nodes[i];
    bool is_live = op_info(node.op).has_effect;
    for (ValueId id : node.outputs) is_live = is_live || wanted[id];
    if (!is_live) continue;
    live[i] = true;
    for (ValueId id : node.inputs)
      if (id != kNone) wanted[id] = true;
  }
  return live;
}

std::vector<uint32_t> Graph::consumer_edges(const std::vector<bool>& live) const {
  std::vector<uint32_t> edges(values.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!live[i]) continue;
    for (ValueId id : nodes[i].inputs)
      if (id != kNone) ++edges[id];
  }
  return edges;
}

}  // namespace minfer
