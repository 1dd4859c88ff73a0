#include "remote_device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "handles.hpp"

namespace minfer::remote {
namespace {

// A buffer as its device hands it out: writes are put off too.
class RemoteBuffer final : public sdk::Buffer {
 public:
  RemoteBuffer(RemoteDevice& device, uint64_t size_bytes) : device_(device), memory_(size_bytes) {}
  ~RemoteBuffer() override {
    if (device_.queue().in_use(&memory_)) broken_contract("a buffer is freed while work needs it");
  }
  void write(uint64_t offset, const void* src, uint64_t size_bytes) override {
    memory_.check(offset, size_bytes);
    const auto* bytes = static_cast<const std::byte*>(src);
    device_.queue().add({&memory_}, [this, offset, copy = std::vector<std::byte>(bytes, bytes + size_bytes)] {
      memory_.write(offset, copy.data(), copy.size());
    });
  }
  void read(uint64_t offset, void* dst, uint64_t size_bytes) override {
    device_.queue().wait();
    memory_.read(offset, dst, size_bytes);
  }
  RemoteMemory& memory() { return memory_; }

 private:
  RemoteDevice& device_;
  RemoteMemory memory_;
};

RemoteMemory& memory_of(sdk::Buffer& buffer) { return static_cast<RemoteBuffer&>(buffer).memory(); }

// A view whose buffers are the memory behind them, as the cpu's planner wants it.
class InnerView {
 public:
  explicit InnerView(const sdk::GraphView& graph) : view_(*graph.abi()) {
    for (uint32_t i = 0; i < graph.n_values(); ++i) values_.push_back(graph.value(i));
    for (mi_value& value : values_) value.buffer = swap(value.buffer);
    for (uint32_t i = 0; i < view_.n_kv_layers; ++i) kv_layers_.push_back(sdk::element(view_.kv_layers, view_.kv_layer_stride, i));
    for (mi_kv_layer& layer : kv_layers_) {
      layer.k = swap(layer.k);
      layer.v = swap(layer.v);
    }
    view_.values = values_.data();
    view_.value_stride = sizeof(mi_value);
    view_.kv_layers = kv_layers_.data();
    view_.kv_layer_stride = sizeof(mi_kv_layer);
  }
  sdk::GraphView get() const { return sdk::GraphView(&view_); }
  std::vector<RemoteMemory*> take_memories() { return std::move(memories_); }

 private:
  mi_buffer* swap(mi_buffer* buffer) {
    if (!buffer) return nullptr;
    RemoteMemory& memory = memory_of(*Handles::all().find(buffer));
    if (std::find(memories_.begin(), memories_.end(), &memory) == memories_.end()) memories_.push_back(&memory);
    return reinterpret_cast<mi_buffer*>(static_cast<sdk::Buffer*>(&memory));
  }

  mi_graph_view view_;
  std::vector<mi_value> values_;
  std::vector<mi_kv_layer> kv_layers_;
  std::vector<RemoteMemory*> memories_;  // each once
};

// Opens several buffers at once.
class OpenedAll {
 public:
  explicit OpenedAll(const std::vector<RemoteMemory*>& memories) {
    for (RemoteMemory* memory : memories) opened_.push_back(std::make_unique<RemoteMemory::Opened>(*memory));
  }

 private:
  std::vector<std::unique_ptr<RemoteMemory::Opened>> opened_;
};

class RemotePlan final : public sdk::Plan {
 public:
  RemotePlan(RemoteDevice& device, std::vector<RemoteMemory*> memories, std::unique_ptr<sdk::Plan> inner)
      : device_(device), memories_(std::move(memories)), inner_(std::move(inner)) {}
  ~RemotePlan() override {
    if (device_.queue().in_use(this)) broken_contract("a plan is destroyed while a run of it is under way");
  }

  // Keeps where the inputs lie and reads them when the work is done, which is when someone waits for it.
  void run(const sdk::Step& step) override {
    mi_step late = *step.abi();
    std::vector<mi_span> spans;
    for (uint32_t kind = 0; kind < late.n_inputs; ++kind) spans.push_back(step.input(kind));
    std::vector<const void*> uses(memories_.begin(), memories_.end());
    uses.push_back(this);
    const bool fail = device_.fail_run().now();
    device_.queue().add(std::move(uses), [this, late, spans, fail]() mutable {
      if (fail) sdk::fail(MI_DEVICE_LOST, "this run fails, as option fail_run wants it");
      late.inputs = spans.data();
      const OpenedAll opened(memories_);
      inner_->run(sdk::Step(&late));
    });
  }

 private:
  RemoteDevice& device_;
  std::vector<RemoteMemory*> memories_;
  std::unique_ptr<sdk::Plan> inner_;
};

}  // namespace

void broken_contract(const char* what) {
  std::fprintf(stderr, "remote: the host breaks the contract of backends: %s\n", what);
  std::abort();
}

RemoteDevice::RemoteDevice(uint32_t index, const RemoteOptions& options)
    : index_(index),
      options_(options),
      fail_alloc_(options.fail_alloc),
      fail_plan_(options.fail_plan),
      fail_run_(options.fail_run),
      cpu_(options.threads, cpu::best_isa()) {}

RemoteDevice::~RemoteDevice() {
  if (!queue_.empty()) broken_contract("the device is closed while work is under way");
}

sdk::DeviceInfo RemoteDevice::info() {
  sdk::DeviceInfo info = cpu_.info();
  info.name = sdk::join("remote:", index_);
  info.flags = 0;
  // What the machine has left is no measure for tests.
  info.memory_total_bytes = options_.memory_kib ? 1ull << 40 : 0;
  info.memory_free_bytes = options_.memory_kib.value_or(0) * 1024;
  return info;
}

void RemoteDevice::supports(const sdk::GraphView& graph, uint8_t* mask) {
  cpu_.supports(graph, mask);
  for (uint32_t n = 0; n < graph.n_nodes(); ++n)
    for (const Refusal& refusal : options_.refuse)
      if (graph.node(n).op == refusal.op && (refusal.layer == MI_NONE || graph.node(n).layer == refusal.layer)) mask[n] = 0;
}

std::unique_ptr<sdk::Buffer> RemoteDevice::alloc(uint64_t size_bytes) {
  if (fail_alloc_.now()) sdk::fail(MI_OUT_OF_MEMORY, "no ", size_bytes, " bytes, as option fail_alloc wants it");
  return std::make_unique<RemoteBuffer>(*this, size_bytes);
}

void RemoteDevice::kv_copy_rows(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_copy* copies, uint32_t n_copies) {
  for (uint32_t i = 0; i < n_copies; ++i) {
    const mi_kv_copy& c = copies[i];
    if (c.src_block >= layout.n_blocks || c.dst_block >= layout.n_blocks || c.src_row + c.n_rows > MI_KV_BLOCK_POSITIONS ||
        c.dst_row + c.n_rows > MI_KV_BLOCK_POSITIONS)
      sdk::fail(MI_INVALID_ARGUMENT, "KV copy ", i, " does not lie in the regions");
  }
  RemoteMemory& k_memory = memory_of(k);
  RemoteMemory& v_memory = memory_of(v);
  queue_.add({&k_memory, &v_memory}, [this, layout, &k_memory, &v_memory, list = std::vector<mi_kv_copy>(copies, copies + n_copies)] {
    const OpenedAll opened({&k_memory, &v_memory});
    cpu_.kv_copy_rows(layout, k_memory, v_memory, list.data(), static_cast<uint32_t>(list.size()));
  });
}

// Whether the keys can be turned shows only when the work before is done, so this one waits.
void RemoteDevice::kv_rotate(const mi_kv_layout& layout, sdk::Buffer& k, const mi_kv_rotation& rotation, sdk::Weights* weights,
                             const mi_kv_rows* rows, uint32_t n_ranges) {
  if (!queue_.empty()) queue_.wait();
  RemoteMemory& memory = memory_of(k);
  const OpenedAll opened({&memory});
  cpu_.kv_rotate(layout, memory, rotation, weights, rows, n_ranges);
}

void RemoteDevice::kv_export(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges,
                             void* k_rows, void* v_rows) {
  if (!queue_.empty()) queue_.wait();
  RemoteMemory& k_memory = memory_of(k);
  RemoteMemory& v_memory = memory_of(v);
  const OpenedAll opened({&k_memory, &v_memory});
  cpu_.kv_export(layout, k_memory, v_memory, rows, n_ranges, k_rows, v_rows);
}

void RemoteDevice::kv_import(const mi_kv_layout& layout, sdk::Buffer& k, sdk::Buffer& v, const mi_kv_rows* rows, uint32_t n_ranges,
                             const void* k_rows, const void* v_rows) {
  if (!queue_.empty()) queue_.wait();
  RemoteMemory& k_memory = memory_of(k);
  RemoteMemory& v_memory = memory_of(v);
  const OpenedAll opened({&k_memory, &v_memory});
  cpu_.kv_import(layout, k_memory, v_memory, rows, n_ranges, k_rows, v_rows);
}

std::unique_ptr<sdk::Plan> RemoteDevice::create_plan(const sdk::GraphView& graph, sdk::Weights* weights) {
  if (fail_plan_.now()) sdk::fail(MI_OUT_OF_MEMORY, "no plan, as option fail_plan wants it");
  // Plans of one device share memory that this one may replace.
  if (!queue_.empty()) queue_.wait();
  InnerView view(graph);
  auto inner = cpu_.create_plan(view.get(), weights);
  return std::make_unique<RemotePlan>(*this, view.take_memories(), std::move(inner));
}

}  // namespace minfer::remote
