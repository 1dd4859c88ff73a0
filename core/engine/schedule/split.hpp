// Cuts a graph into splits: maximal runs of live nodes on one device, with the copies that must precede each.
#pragma once

#include <vector>

#include "engine/graph/graph.hpp"

namespace minfer {

// A value made on one device and read on another. Always the root of a chain of views.
struct StagedCopy {
  ValueId value = kNone;
  uint32_t from_device = 0;
  friend bool operator==(const StagedCopy&, const StagedCopy&) = default;
};

struct Split {
  uint32_t device = 0;
  std::vector<NodeId> nodes;       // in execution order; views and dead nodes are left out
  std::vector<StagedCopy> copies;  // done before the first node runs
};

// node_device[n] is the device of node n. observe: one node per split.
std::vector<Split> split_graph(const Graph& graph, const std::vector<uint32_t>& node_device, bool observe);

}  // namespace minfer
