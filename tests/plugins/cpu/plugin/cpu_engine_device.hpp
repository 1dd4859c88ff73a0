// The cpu plugin's device behind the engine's interface, without a shared library between: tests see its planner and its code runs in
// the test program. And hand-made graphs on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpu_device.hpp"
#include "engine/device.hpp"
#include "engine/graph/graph_builder.hpp"
#include "support/graph_writer.hpp"

namespace minfer::test {

class CpuEngineDevice final : public Device {
 public:
  explicit CpuEngineDevice(unsigned threads, cpu::Isa isa = cpu::best_isa()) : threads_(threads), cpu_(threads, isa) {
    info_.name = "cpu";
    info_.host = true;
  }

  std::vector<uint32_t> barriers;    // inside a run, of each plan made so far
  std::vector<size_t> phase_counts;  // likewise

  const DeviceInfo& info() const override { return info_; }
  Result<std::vector<bool>> supports(const SplitView& view) override;
  Result<std::unique_ptr<WeightSet>> import_weights(std::span<const WeightSource> weights,
                                                    const std::function<void(uint32_t id)>& source_done) override;
  Result<std::unique_ptr<Buffer>> alloc(uint64_t size_bytes) override;
  Result<KvRegionBytes> kv_region_bytes(const KvLayout& layout) override;
  Status kv_copy_rows(const KvLayer& layer, std::span<const KvRowCopy> copies) override;
  Status kv_rotate(const KvLayer& layer, const KvRotation& rotation, WeightSet* weights, std::span<const KvRows> rows,
                   bool check_only) override;
  Result<std::unique_ptr<Plan>> create_plan(const SplitView& view, WeightSet* weights) override;
  Status sync() override { return {}; }

 private:
  const unsigned threads_;
  DeviceInfo info_;
  cpu::RopeTables tables_;
  cpu::CpuDevice cpu_;
};

// One graph, built by hand, planned and run: every value has memory of its own.
class HandGraph {
 public:
  HandGraph(unsigned threads, uint32_t n_tokens, const CParams& cparams, uint32_t n_head_kv = 1, uint32_t head_dim = 16);

  // Before the nodes that use them. f32 values, or bytes of another type.
  uint32_t add_weight(uint32_t roles, const Shape& shape, const std::vector<float>& values);
  uint32_t add_weight(uint32_t roles, const Shape& shape, DType dtype, std::vector<std::byte> bytes);
  GraphWriter& g();  // the first use ends the list of weights
  // Plans the graph; kept values can be read afterwards.
  void prepare(const std::vector<ValueId>& kept);
  Status run();

  std::array<std::vector<int32_t>, kInputKinds> inputs;  // by InputKind
  std::vector<int32_t>& input(InputKind kind) { return inputs[static_cast<size_t>(kind)]; }
  std::vector<float> read(ValueId id) const;
  Buffer& k() { return *k_; }
  Buffer& v() { return *v_; }
  CpuEngineDevice device;

 private:
  CParams cparams_;
  GraphParams params_;
  KvLayout layout_;
  std::vector<WeightInfo> infos_;
  std::vector<std::vector<std::byte>> data_;
  std::unique_ptr<GraphBuilder> builder_;
  std::unique_ptr<GraphWriter> writer_;
  Graph graph_;
  std::unique_ptr<WeightSet> weights_;
  std::unique_ptr<Buffer> memory_, k_, v_;
  std::vector<uint64_t> offsets_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace minfer::test
