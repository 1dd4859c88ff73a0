// The cpu plugin's device behind the engine's interface, without a shared library between: tests see its planner and its code runs in
// the test program. And hand-made graphs on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpu_device.hpp"
#include "support/device_graph.hpp"

namespace minfer::test {

class CpuEngineDevice final : public Device {
 public:
  explicit CpuEngineDevice(unsigned threads, cpu::Isa isa = cpu::best_isa()) : threads_(threads), cpu_(threads, isa) {
    info_.name = "cpu";
    info_.host = true;
  }

  std::vector<uint32_t> barriers;                             // inside a run, of each plan made so far
  std::vector<std::pair<uint32_t, uint32_t>> layer_barriers;  // of these those in layers, and layers
  std::vector<size_t> phase_counts;                           // likewise

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
  Status sync() override { return {}; }

 private:
  const unsigned threads_;
  DeviceInfo info_;
  cpu::RopeTables tables_;
  cpu::CpuDevice cpu_;
};

// A graph on a device of its own.
struct OwnCpuDevice {
  explicit OwnCpuDevice(unsigned threads) : device(threads) {}
  CpuEngineDevice device;
};
class HandGraph : public OwnCpuDevice, public DeviceGraph {
 public:
  HandGraph(unsigned threads, uint32_t n_tokens, const CParams& cparams, uint32_t n_head_kv = 1, uint32_t head_dim = 16)
      : OwnCpuDevice(threads), DeviceGraph(device, n_tokens, cparams, n_head_kv, head_dim) {}
};

}  // namespace minfer::test
