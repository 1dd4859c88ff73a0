// Rewrites chains of basic operations into fused ones: Silu + Mul -> SiluMul, MatMul x2 + SiluMul -> FusedFfn,
// MatMul x3 + Rope x2 + KvStore -> FusedQkv. Each only where all its nodes are on one device, its flag is set and that device
// supports the result. The numbers do not change. Projections with anything between product and rotation (a norm per head) stay as they
// are.
#pragma once

#include <functional>
#include <vector>

#include "engine/graph/graph.hpp"
#include "engine/reuse/graph_params.hpp"

namespace minfer {

struct FusedGraph {
  Graph graph;
  std::vector<uint32_t> node_device;
  uint32_t n_fused = 0;  // fused nodes in the graph
};

// allow(node, device): whether a fused node may take the place of its chain.
FusedGraph fuse(const Graph& graph, const std::vector<uint32_t>& node_device, const CParams& cparams,
                const std::function<bool(const Node& node, uint32_t device)>& allow);

}  // namespace minfer
