// A device that runs every operation of minfer/abi/graph.h in the plainest way: f32 weights, sums in double, one row at a time, results
// rounded to f32 after each node. It shares no code with any backend. Fresh memory is signalling NaN, so that a value read
// before it is written shows. A run allocates nothing.
#pragma once

#include <functional>
#include <string>

#include "engine/device.hpp"

namespace minfer::test {

struct ReferenceOptions {
  std::string name = "reference";
  bool host = true;                // DeviceInfo::host, and host_ptr() works; false: buffers can only be read and written by calls
  uint64_t memory_free_bytes = 0;  // what it tells of its memory; 0: nothing
  bool private_values = false;     // values without the kept mark never reach the scratch memory, as a backend may do
  bool deferred = false;           // a run is only queued; sync, reads, writes, KV copies and the end of a plan do the work
  std::function<bool(const Graph&, const Node&)> supports;  // empty: everything
};

struct ReferenceCounters {
  uint64_t allocs = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t syncs = 0;
  uint64_t kv_copies = 0;     // calls of kv_copy_rows
  uint64_t kv_rotations = 0;  // calls of kv_rotate that write
  uint64_t supports = 0;
  uint64_t plans = 0;
  uint64_t live_plans = 0;
  uint64_t runs = 0;
  uint64_t nodes = 0;
  uint64_t fused_nodes = 0;
};

class ReferenceDevice final : public Device {
 public:
  explicit ReferenceDevice(ReferenceOptions options = {});

  ReferenceCounters counters;
  // Number of calls until one fails with an error that says "injected"; -1: none does.
  int fail_alloc = -1;
  int fail_plan = -1;
  int fail_run = -1;
  int fail_kv_copy = -1;
  int fail_kv_rotate = -1;
  int fail_kv_import = -1;

  const ReferenceOptions& options() const { return options_; }

  const DeviceInfo& info() const override { return info_; }
  Result<std::vector<bool>> supports(const SplitView& view) override;
  Result<std::unique_ptr<WeightSet>> import_weights(std::span<const WeightSource> weights,
                                                    const std::function<void(uint32_t id)>& source_done) override;
  Result<std::unique_ptr<Buffer>> alloc(uint64_t size_bytes) override;
  Result<KvRegionBytes> kv_region_bytes(const KvLayout& layout) override;
  Status kv_copy_rows(const KvLayer& layer, std::span<const KvRowCopy> copies) override;
  Status kv_rotate(const KvLayer& layer, const KvRotation& rotation, WeightSet* weights, std::span<const KvRows> rows,
                   bool check_only) override;
  Status kv_export(const KvLayer& layer, std::span<const KvRows> rows, std::byte* k_rows, std::byte* v_rows) override;
  Status kv_import(const KvLayer& layer, std::span<const KvRows> rows, const std::byte* k_rows, const std::byte* v_rows) override;
  Result<std::unique_ptr<Plan>> create_plan(const SplitView& view, WeightSet* weights) override;
  Status sync() override;

  // Does what is queued. The first error of a queued run is what sync returns next.
  void flush();
  void defer(std::function<Status()> run) { queue_.push_back(std::move(run)); }

 private:
  ReferenceOptions options_;
  DeviceInfo info_;
  std::vector<std::function<Status()>> queue_;
  Status late_;
};

// One K or V region lies as [block][row][head][dim] in f32. The memory of any buffer of a ReferenceDevice, host or not.
float* reference_memory(Buffer& buffer);

}  // namespace minfer::test
