// Decides once per model which device holds each layer, weight and KV region, from what the user asked for and what the devices
// support. Fixed for the life of the model. Knows nothing of memory or plans.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/architecture.hpp"
#include "engine/device.hpp"

namespace minfer {

// A node that its layer's device cannot run and another one takes; or that follows the other use of its tensor there.
struct Fallback {
  uint32_t layer;
  Op op;
  DType dtype;  // of the node's weight, f32 where it has none
  uint32_t from_device;
  uint32_t to_device;
  bool tied;  // from_device supports this node, not the one that shares its matrix
};

struct Placement {
  uint32_t id = 0;                                                // process-wide; part of the graph cache's key
  std::vector<uint32_t> layer_device;                             // by transformer block
  std::vector<uint32_t> kv_device;                                // by transformer block
  std::vector<uint32_t> weight_device;                            // by weight id
  std::set<std::pair<uint32_t, uint32_t>> vector_copies;          // weight id, device: vectors that further devices need too
  std::map<std::pair<uint32_t, Op>, uint32_t> weightless_device;  // exceptions: operation of a layer that moved
  uint32_t embedding_device = 0;
  uint32_t output_device = 0;
  std::vector<Fallback> fallbacks;

  bool holds(uint32_t device, uint32_t weight_id) const {
    return weight_device[weight_id] == device || vector_copies.count({weight_id, device}) > 0;
  }
  // The device of a layer, or of the places outside the blocks.
  uint32_t device_of(uint32_t layer) const;
};

// Number of leading transformer blocks that a device takes; nullopt = all that are left.
using LayerCounts = std::vector<std::optional<uint32_t>>;

// devices: best first, as the user listed them; blocks are handed out in that order. Embedding and output go with the first
// device only when it holds all blocks, otherwise to the last one. An operation that its device does not support goes to the next listed
// device that does, last to a host device. KV operations of a layer stay together, and so do the uses of one matrix (a tied embedding).
// Fails when no device supports a node; with strict[d], also when a node would leave device d.
Result<Placement> place_model(ModelArchitecture& architecture, std::span<Device* const> devices, const LayerCounts& layer_counts,
                              const std::vector<bool>& strict, const CParams& cparams);

// One line for people: "layer 3: matmul (weight type Q4_K) is not supported on gpu0, runs on host". Without a name: the number.
std::string describe(const Fallback& fallback, std::span<Device* const> devices, std::string_view dtype_name = {});
// The same for all of them, with one line for what several layers have in common: "layers 0-29: ...".
std::vector<std::string> describe(std::span<const Fallback> fallbacks, std::span<Device* const> devices,
                                  const std::function<std::string_view(DType)>& dtype_name);

}  // namespace minfer
