// Chooses a device per node of a built graph: where its weight or KV is, a weightless node with its layer.
#pragma once

#include "engine/schedule/placement.hpp"

namespace minfer {

// Device index by node.
std::vector<uint32_t> assign(const Graph& graph, const Placement& placement);

}  // namespace minfer
