#include "cpu_engine_device.hpp"

#include "plugin/graph_view.hpp"

namespace minfer::test {
namespace {

class EngineBuffer final : public Buffer {
 public:
  EngineBuffer(std::unique_ptr<sdk::Buffer> inner, uint64_t size_bytes) : inner_(std::move(inner)), size_bytes_(size_bytes) {}
  uint64_t size_bytes() const override { return size_bytes_; }
  void* host_ptr() const override { return inner_->host_ptr(); }
  Status write(uint64_t offset, const void* src, uint64_t size) override {
    inner_->write(offset, src, size);
    return {};
  }
  Status read(uint64_t offset, void* dst, uint64_t size) const override {
    inner_->read(offset, dst, size);
    return {};
  }
  sdk::Buffer& inner() { return *inner_; }

 private:
  std::unique_ptr<sdk::Buffer> inner_;
  uint64_t size_bytes_;
};

mi_buffer* handle_of(Buffer* buffer) { return reinterpret_cast<mi_buffer*>(&static_cast<EngineBuffer*>(buffer)->inner()); }

struct EngineWeights final : WeightSet {
  std::unique_ptr<sdk::Weights> inner;
  uint64_t own_bytes() const override { return inner->own_bytes(); }
};

// What the plugin throws, as an error.
template <class Body>
Status guarded(Body&& body) {
  try {
    body();
    return {};
  } catch (const sdk::Error& error) {
    return Error{static_cast<ErrorCode>(error.code()), error.what()};
  }
}

struct EnginePlan final : Plan {
  std::unique_ptr<sdk::Plan> inner;
  Status run(const StepInputs& inputs, const StopCheck*) override {
    mi_span spans[kInputKinds];
    for (uint32_t i = 0; i < kInputKinds; ++i) spans[i] = {inputs[i].data(), inputs[i].size()};
    mi_step step{};
    step.struct_size = sizeof step;
    step.n_inputs = kInputKinds;
    step.inputs = spans;
    return guarded([&] { inner->run(sdk::Step(&step)); });
  }
};

}  // namespace

Result<std::vector<bool>> CpuEngineDevice::supports(const SplitView& view) {
  const plugin::AbiGraphView graph(view, handle_of);
  std::vector<uint8_t> mask(view.nodes.size(), 0);
  cpu_.supports(sdk::GraphView(graph.get()), mask.data());
  return std::vector<bool>(mask.begin(), mask.end());
}

Result<std::unique_ptr<WeightSet>> CpuEngineDevice::import_weights(std::span<const WeightSource> weights,
                                                                   const std::function<void(uint32_t id)>&) {
  std::vector<mi_weight> list;
  for (const WeightSource& source : weights) {
    mi_weight out{};
    out.struct_size = sizeof out;
    out.id = source.id;
    out.dtype = static_cast<uint32_t>(source.info->dtype);
    out.n_dims = source.info->shape.n_dims;
    for (size_t i = 0; i < 4; ++i) out.dims[i] = source.info->shape.dims[i];
    out.roles = source.info->roles;
    out.layer = source.info->layer;
    out.data = source.data.data();
    out.size_bytes = source.data.size();
    list.push_back(out);
  }
  mi_weight_list in{};
  in.struct_size = sizeof in;
  in.n_weights = static_cast<uint32_t>(list.size());
  in.weight_stride = sizeof(mi_weight);
  in.weights = list.data();
  auto set = std::make_unique<EngineWeights>();
  MINFER_TRY(guarded([&] { set->inner = cpu_.import_weights(sdk::WeightList(&in)); }));
  return std::unique_ptr<WeightSet>(std::move(set));
}

Result<std::unique_ptr<Buffer>> CpuEngineDevice::alloc(uint64_t size_bytes) {
  return std::unique_ptr<Buffer>(std::make_unique<EngineBuffer>(cpu_.alloc(size_bytes), size_bytes));
}

Result<KvRegionBytes> CpuEngineDevice::kv_region_bytes(const KvLayout& layout) {
  KvRegionBytes out;
  MINFER_TRY(guarded([&] {
    const sdk::KvBytes bytes = cpu_.kv_region_bytes(plugin::to_abi(layout));
    out = {bytes.k, bytes.v};
  }));
  return out;
}

Status CpuEngineDevice::kv_copy_rows(const KvLayer& layer, std::span<const KvRowCopy> copies) {
  std::vector<mi_kv_copy> list;
  for (const KvRowCopy& c : copies) list.push_back({c.src_block, c.src_row, c.dst_block, c.dst_row, c.n_rows});
  return guarded([&] {
    cpu_.kv_copy_rows(plugin::to_abi(layer.layout), static_cast<EngineBuffer*>(layer.k)->inner(),
                      static_cast<EngineBuffer*>(layer.v)->inner(), list.data(), static_cast<uint32_t>(list.size()));
  });
}

Status CpuEngineDevice::kv_export(const KvLayer& layer, std::span<const KvRows> rows, std::byte* k_rows, std::byte* v_rows) {
  std::vector<mi_kv_rows> list;
  for (const KvRows& r : rows) list.push_back({r.block, r.first_row, r.n_rows});
  return guarded([&] {
    cpu_.kv_export(plugin::to_abi(layer.layout), static_cast<EngineBuffer*>(layer.k)->inner(), static_cast<EngineBuffer*>(layer.v)->inner(),
                   list.data(), static_cast<uint32_t>(list.size()), k_rows, v_rows);
  });
}

Status CpuEngineDevice::kv_import(const KvLayer& layer, std::span<const KvRows> rows, const std::byte* k_rows, const std::byte* v_rows) {
  std::vector<mi_kv_rows> list;
  for (const KvRows& r : rows) list.push_back({r.block, r.first_row, r.n_rows});
  return guarded([&] {
    cpu_.kv_import(plugin::to_abi(layer.layout), static_cast<EngineBuffer*>(layer.k)->inner(), static_cast<EngineBuffer*>(layer.v)->inner(),
                   list.data(), static_cast<uint32_t>(list.size()), k_rows, v_rows);
  });
}

Status CpuEngineDevice::kv_rotate(const KvLayer& layer, const KvRotation& rotation, WeightSet* weights, std::span<const KvRows> rows,
                                  bool check_only) {
  std::vector<mi_kv_rows> list;
  for (const KvRows& r : rows) list.push_back({r.block, r.first_row, r.n_rows});
  const mi_op_attrs rope = plugin::to_abi(rotation.rope);
  const mi_kv_rotation how{sizeof how, rotation.delta, &rope, rotation.freq_factors, check_only};
  sdk::Weights* imported = weights ? static_cast<EngineWeights*>(weights)->inner.get() : nullptr;
  return guarded([&] {
    cpu_.kv_rotate(plugin::to_abi(layer.layout), static_cast<EngineBuffer*>(layer.k)->inner(), how, imported, list.data(),
                   static_cast<uint32_t>(list.size()));
  });
}

Result<std::unique_ptr<Plan>> CpuEngineDevice::create_plan(const SplitView& view, WeightSet* weights) {
  const plugin::AbiGraphView graph(view, handle_of);
  sdk::Weights* imported = weights ? static_cast<EngineWeights*>(weights)->inner.get() : nullptr;
  auto plan = std::make_unique<EnginePlan>();
  MINFER_TRY(guarded([&] {
    const cpu::PhasePlan phases =
        cpu::make_phases(sdk::GraphView(graph.get()), static_cast<const cpu::CpuWeights*>(imported), threads_, tables_);
    barriers.push_back(phases.n_barriers);
    layer_barriers.emplace_back(phases.n_layer_barriers, phases.n_layers);
    phase_counts.push_back(phases.phases.size());
    plan->inner = cpu_.create_plan(sdk::GraphView(graph.get()), imported);
  }));
  return std::unique_ptr<Plan>(std::move(plan));
}

}  // namespace minfer::test
