// How many layers each device takes: what the user asked for, or what fits its free memory. Decided once per model, before placement.
// Counts weights as the file holds them, the KV of one session and its scratch memory: an estimate, since a backend may pack
// weights in its own way.
#pragma once

#include <string>
#include <vector>

#include "engine/architecture.hpp"
#include "engine/device.hpp"
#include "engine/schedule/placement.hpp"

namespace minfer {

// How many of the leading transformer blocks that are left a device is to take.
struct LayerRequest {
  enum class Mode {
    kAuto,   // as many as fit; all where the device does not tell its memory, and on the host
    kAll,    // all, or an error
    kCount,  // that many (all, where there are fewer), or an error
  };
  Mode mode = Mode::kAuto;
  uint32_t count = 0;  // kCount only
};

struct OffloadRequest {
  std::span<Device* const> devices;           // best first
  const std::vector<LayerRequest>& layers;    // by device
  const std::vector<uint64_t>& weight_bytes;  // by weight id
  CParams cparams;                            // of the session to come: n_ctx, max_seqs, kv_format
  uint32_t n_batch = 512;                     // rows of its largest batch
};

struct OffloadPlan {
  LayerCounts counts;              // by device
  std::vector<std::string> lines;  // one for people per device whose memory is not the host's, and per count above the model's
};

// A device that cannot hold what was asked of it is kOutOfMemory, with the figures and what would fit. Memory that the device does not
// tell is not judged.
Result<OffloadPlan> plan_offload(ModelArchitecture& architecture, const OffloadRequest& request);

}  // namespace minfer
