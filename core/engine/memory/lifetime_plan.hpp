// Where each activation lies in the scratch memory of each device: a pure function of the graph and its splits.
//
// Lifetimes follow node order. A value lives from the node that makes it (or the copy that brings it to a second device)
// to its last reader on that device; outputs live to the end of the step. Freed space serves later nodes. An operation that
// allows it writes over an input whose only reader it is. Views share the memory of what they look at and keep it alive.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/schedule/split.hpp"

namespace minfer {

inline constexpr uint64_t kNoPlace = ~uint64_t{0};
inline constexpr uint64_t kScratchAlignment = 64;  // bytes

struct LifetimePlan {
  // offset_bytes[device][value]: place of the value on that device, or kNoPlace. Set for views too.
  std::vector<std::vector<uint64_t>> offset_bytes;
  std::vector<uint64_t> arena_bytes;  // by device: what its scratch buffer must hold
  uint32_t n_in_place = 0;            // nodes that write over an input

  friend bool operator==(const LifetimePlan&, const LifetimePlan&) = default;
};

// observe: every value keeps memory of its own to the end of the step.
LifetimePlan plan_lifetimes(const Graph& graph, const std::vector<Split>& splits, uint32_t n_devices, bool observe);

}  // namespace minfer
