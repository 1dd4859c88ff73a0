// How a model rotates the keys it stores, read from its own graph: what turning them on by some positions needs to know.
//
// A context can be shifted only where positions enter a model by rotation alone: then a key stored at position p, turned by d, is the
// key that its row would have at p + d. Anything else is refused.
#pragma once

#include <vector>

#include "engine/device.hpp"
#include "engine/schedule/placement.hpp"

namespace minfer {

// By layer, with delta 0. `graph` is as the architecture emits it (not fused) and stores K in every layer. Refuses a layer whose K is
// not the result of a Rope at the positions of its rows, an operation beside Rope, KvStore and Attention that reads positions, and
// frequency factors on another device than the layer's KV.
Result<std::vector<KvRotation>> find_k_rotations(const Graph& graph, uint32_t n_layers, const Placement& placement);

}  // namespace minfer
