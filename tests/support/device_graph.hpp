// A graph made by hand on one device, for tests of a backend's operations.
#pragma once

#include <memory>
#include <vector>

#include "engine/device.hpp"
#include "engine/graph/graph_builder.hpp"
#include "support/graph_writer.hpp"

namespace minfer::test {

// One graph, built by hand, planned and run: every value has memory of its own.
class DeviceGraph {
 public:
  // The device must outlive the graph.
  DeviceGraph(Device& device, uint32_t n_tokens, const CParams& cparams, uint32_t n_head_kv = 1, uint32_t head_dim = 16);

  // Before the nodes that use them. f32 values, or bytes of another type.
  uint32_t add_weight(uint32_t roles, const Shape& shape, const std::vector<float>& values);
  uint32_t add_weight(uint32_t roles, const Shape& shape, DType dtype, std::vector<std::byte> bytes);
  GraphWriter& g();  // the first use ends the list of weights
  // Plans the graph; kept values can be read afterwards.
  void prepare(const std::vector<ValueId>& kept);
  Status run();  // and waits

  std::array<std::vector<int32_t>, kInputKinds> inputs;  // by InputKind
  std::vector<int32_t>& input(InputKind kind) { return inputs[static_cast<size_t>(kind)]; }
  std::vector<float> read(ValueId id) const;
  Buffer& k() { return *k_; }
  Buffer& v() { return *v_; }

 private:
  Device& device_;
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
