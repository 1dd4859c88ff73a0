// What the engine asks of a backend's device. core/plugin implements it over the C table of minfer/abi/backend.h, where the
// contract of each call stands; tests implement it directly.
//
// Threads: one at a time per device (LoadedModel::device_turn). Ownership: whatever a device makes must be destroyed before the device.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/graph.hpp"
#include "engine/graph/graph_builder.hpp"

namespace minfer {

struct DeviceInfo {
  std::string name;                 // as the user lists it
  std::string description;          // for people
  bool host = false;                // its buffers are ordinary memory of this process
  uint64_t memory_total_bytes = 0;  // 0: unknown, and so is the next one
  uint64_t memory_free_bytes = 0;
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual uint64_t size_bytes() const = 0;
  virtual void* host_ptr() const = 0;  // nullptr where the host cannot touch the memory
  virtual Status write(uint64_t offset, const void* src, uint64_t size_bytes) = 0;
  virtual Status read(uint64_t offset, void* dst, uint64_t size_bytes) const = 0;
};

struct WeightSource {
  uint32_t id = 0;
  const WeightInfo* info = nullptr;
  std::span<const std::byte> data;  // GGUF layout; stays valid as long as the WeightSet
};

class WeightSet {
 public:
  virtual ~WeightSet() = default;
  virtual uint64_t own_bytes() const = 0;
};

// Shape of one layer's K and V regions.
struct KvLayout {
  KvFormat format = KvFormat::kF16;
  uint32_t n_head_kv = 0;
  uint32_t head_dim = 0;
  uint32_t n_blocks = 0;
  friend bool operator==(const KvLayout&, const KvLayout&) = default;
};

// Bytes of one position's K (or V) in canonical form: [n_head_kv][head_dim] in the format; q8_0 takes 34 bytes for 32 values.
inline uint64_t kv_row_bytes(const KvLayout& layout) {
  const uint64_t values = uint64_t{layout.n_head_kv} * layout.head_dim;
  switch (layout.format) {
    case KvFormat::kF32: return values * 4;
    case KvFormat::kF16: return values * 2;
    case KvFormat::kQ8_0: return values / 32 * 34;
  }
  return 0;
}

struct KvRegionBytes {
  uint64_t k = 0;
  uint64_t v = 0;
};

struct KvRowCopy {
  uint32_t src_block, src_row, dst_block, dst_row, n_rows;
  friend bool operator==(const KvRowCopy&, const KvRowCopy&) = default;
};

struct KvRows {
  uint32_t block, first_row, n_rows;
};

// How the keys of a layer were rotated when they were stored, and by how many positions they are to be turned on.
struct KvRotation {
  OpAttrs rope;                   // of the Rope node of K
  uint32_t freq_factors = kNone;  // weight id
  int32_t delta = 0;
};

struct KvLayer {
  uint32_t layer = 0;
  KvLayout layout;
  Buffer* k = nullptr;
  Buffer* v = nullptr;
};

// Part of a graph on one device. In `supports` there is no memory: places is empty and KV buffers are null.
struct SplitView {
  struct Place {
    Buffer* buffer = nullptr;
    uint64_t offset_bytes = 0;
  };
  const Graph* graph = nullptr;
  std::span<const NodeId> nodes;  // in execution order
  std::span<const Place> places;  // by ValueId: where an activation lies on this device; empty in `supports`
  std::span<const uint8_t> kept;  // by ValueId: 1 = MI_VALUE_KEPT of minfer/abi/graph.h; empty in `supports`
  std::span<const KvLayer> kv;    // layers that the nodes touch
  uint64_t uid = 0;
  uint64_t generation = 0;
  uint32_t n_ctx = 0;
};

// The bytes of each graph input, by InputKind; empty where a split does not read it.
using StepInputs = std::array<std::span<const std::byte>, kInputKinds>;

// Polled by a backend between phases; true stops the run with kCancelled.
using StopCheck = std::function<bool()>;

class Plan {
 public:
  virtual ~Plan() = default;
  virtual Status run(const StepInputs& inputs, const StopCheck* should_stop) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  // One flag per node of view.nodes.
  virtual Result<std::vector<bool>> supports(const SplitView& view) = 0;
  // source_done(id) is called when the bytes of a weight are no longer needed: in here, or, a copy of it, in a run of
  // a plan while the set lives.
  virtual Result<std::unique_ptr<WeightSet>> import_weights(std::span<const WeightSource> weights,
                                                            const std::function<void(uint32_t id)>& source_done) = 0;
  virtual Result<std::unique_ptr<Buffer>> alloc(uint64_t size_bytes) = 0;
  virtual Result<KvRegionBytes> kv_region_bytes(const KvLayout& layout) = 0;
  virtual Status kv_copy_rows(const KvLayer& layer, std::span<const KvRowCopy> copies) = 0;
  // weights: the set imported on this device. check_only: nothing is written, the status says whether it would succeed.
  virtual Status kv_rotate(const KvLayer& layer, const KvRotation& rotation, WeightSet* weights, std::span<const KvRows> rows,
                           bool check_only) = 0;
  // Canonical rows, as minfer/abi/backend.h describes them: kv_row_bytes() for each row of the ranges, in their order.
  virtual Status kv_export(const KvLayer& layer, std::span<const KvRows> rows, std::byte* k_rows, std::byte* v_rows) = 0;
  virtual Status kv_import(const KvLayer& layer, std::span<const KvRows> rows, const std::byte* k_rows, const std::byte* v_rows) = 0;
  virtual Result<std::unique_ptr<Plan>> create_plan(const SplitView& view, WeightSet* weights) = 0;
  virtual Status sync() = 0;
};

}  // namespace minfer
