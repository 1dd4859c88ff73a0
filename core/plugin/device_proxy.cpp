#include "plugin/device_proxy.hpp"

#include "plugin/abi_error.hpp"
#include "plugin/graph_view.hpp"

namespace minfer::plugin {
namespace {

static_assert(sizeof(KvRowCopy) == sizeof(mi_kv_copy) && offsetof(KvRowCopy, src_row) == offsetof(mi_kv_copy, src_row) &&
              offsetof(KvRowCopy, dst_block) == offsetof(mi_kv_copy, dst_block) &&
              offsetof(KvRowCopy, dst_row) == offsetof(mi_kv_copy, dst_row) && offsetof(KvRowCopy, n_rows) == offsetof(mi_kv_copy, n_rows));
static_assert(sizeof(KvRows) == sizeof(mi_kv_rows) && offsetof(KvRows, first_row) == offsetof(mi_kv_rows, first_row) &&
              offsetof(KvRows, n_rows) == offsetof(mi_kv_rows, n_rows));
static_assert(kRoleMatrix == MI_ROLE_MATRIX && kRoleVector == MI_ROLE_VECTOR && kRoleEmbedding == MI_ROLE_EMBEDDING &&
              kRoleOutput == MI_ROLE_OUTPUT);

// What every object of a device needs: the plugin, kept open, and the device's name for messages.
struct Owner {
  std::shared_ptr<OpenPlugin> plugin;
  std::string who;  // "backend cpu"

  const mi_backend_v1& table() const { return *plugin->backend(); }
};

class ProxyBuffer final : public Buffer {
 public:
  ProxyBuffer(const Owner& owner, mi_buffer* handle, uint64_t size_bytes)
      : owner_(owner), handle_(handle), size_bytes_(size_bytes), host_ptr_(owner.table().buffer_host_ptr(handle)) {}
  ~ProxyBuffer() override { owner_.table().buffer_free(handle_); }

  mi_buffer* handle() const { return handle_; }
  uint64_t size_bytes() const override { return size_bytes_; }
  void* host_ptr() const override { return host_ptr_; }
  Status write(uint64_t offset, const void* src, uint64_t size) override {
    MINFER_TRY(check(offset, size));
    AbiError error;
    return error.status(owner_.table().buffer_write(handle_, offset, src, size, error.out()), owner_.who);
  }
  Status read(uint64_t offset, void* dst, uint64_t size) const override {
    MINFER_TRY(check(offset, size));
    AbiError error;
    return error.status(owner_.table().buffer_read(handle_, offset, dst, size, error.out()), owner_.who);
  }

 private:
  Status check(uint64_t offset, uint64_t size) const {
    if (offset <= size_bytes_ && size <= size_bytes_ - offset) return {};
    return invalid("{}: bytes {} + {} do not lie in a buffer of {}", owner_.who, offset, size, size_bytes_);
  }

  const Owner& owner_;
  mi_buffer* handle_;
  uint64_t size_bytes_;
  void* host_ptr_;
};

// The engine hands a device only buffers that the same device made.
mi_buffer* handle_of(Buffer* buffer) { return static_cast<ProxyBuffer*>(buffer)->handle(); }

class ProxyWeights final : public WeightSet {
 public:
  using SourceDone = std::function<void(uint32_t id)>;
  ProxyWeights(const Owner& owner, mi_weights* handle, std::shared_ptr<const SourceDone> source_done)
      : owner_(owner), handle_(handle), source_done_(std::move(source_done)) {}
  ~ProxyWeights() override { owner_.table().weights_free(handle_); }
  mi_weights* handle() const { return handle_; }
  uint64_t own_bytes() const override { return owner_.table().weights_bytes(handle_); }

 private:
  const Owner& owner_;
  mi_weights* handle_;
  std::shared_ptr<const SourceDone> source_done_;  // the plugin may call it until weights_free
};

class ProxyPlan final : public Plan {
 public:
  ProxyPlan(const Owner& owner, mi_plan* handle) : owner_(owner), handle_(handle) {}
  ~ProxyPlan() override { owner_.table().plan_destroy(handle_); }

  // Allocates nothing unless it fails.
  Status run(const StepInputs& inputs, const StopCheck* should_stop) override {
    mi_span spans[kInputKinds];
    for (uint32_t i = 0; i < kInputKinds; ++i) spans[i] = {inputs[i].data(), inputs[i].size()};
    mi_step step{};
    step.struct_size = sizeof step;
    step.n_inputs = kInputKinds;
    step.inputs = spans;
    if (should_stop && *should_stop) {
      step.stop_ctx = const_cast<StopCheck*>(should_stop);
      step.should_stop = [](void* ctx) noexcept -> int32_t { return (*static_cast<const StopCheck*>(ctx))() ? 1 : 0; };
    }
    AbiError error;
    return error.status(owner_.table().plan_run(handle_, &step, error.out()), owner_.who);
  }

 private:
  const Owner& owner_;
  mi_plan* handle_;
};

class ProxyDevice final : public Device {
 public:
  ProxyDevice(Owner owner, mi_device* handle) : owner_(std::move(owner)), handle_(handle) {}
  ~ProxyDevice() override { owner_.table().device_close(handle_); }

  Status read_info() {
    mi_device_info info{};
    info.struct_size = sizeof info;
    AbiError error;
    MINFER_TRY(error.status(owner_.table().device_info(handle_, &info, error.out()), owner_.who));
    info.name[sizeof info.name - 1] = 0;
    info.description[sizeof info.description - 1] = 0;
    if (!info.name[0]) return internal_error("{}: a device without a name", owner_.who);
    info_ = {info.name, info.description, (info.flags & MI_DEVICE_HOST) != 0, info.memory_total_bytes, info.memory_free_bytes};
    owner_.who = text("device {}", info_.name);
    return {};
  }

  const DeviceInfo& info() const override { return info_; }

  Result<std::vector<bool>> supports(const SplitView& view) override {
    const AbiGraphView graph(view, handle_of);
    std::vector<uint8_t> mask(view.nodes.size(), 0);
    AbiError error;
    MINFER_TRY(error.status(owner_.table().supports(handle_, graph.get(), mask.data(), error.out()), owner_.who));
    return std::vector<bool>(mask.begin(), mask.end());
  }

  Result<std::unique_ptr<WeightSet>> import_weights(std::span<const WeightSource> weights,
                                                    const std::function<void(uint32_t id)>& source_done) override {
    std::vector<mi_weight> list;
    list.reserve(weights.size());
    for (const WeightSource& source : weights) {
      const WeightInfo& info = *source.info;
      mi_weight out{};
      out.struct_size = sizeof out;
      out.id = source.id;
      out.name = to_abi(info.name);
      out.dtype = static_cast<uint32_t>(info.dtype);
      out.n_dims = info.shape.n_dims;
      for (size_t i = 0; i < 4; ++i) out.dims[i] = info.shape.dims[i];
      out.roles = info.roles;
      out.layer = info.layer;
      out.data = source.data.data();
      out.size_bytes = source.data.size();
      list.push_back(out);
    }
    mi_weight_list in{};
    in.struct_size = sizeof in;
    in.n_weights = static_cast<uint32_t>(list.size());
    in.weight_stride = sizeof(mi_weight);
    in.weights = list.data();
    const auto done = std::make_shared<const ProxyWeights::SourceDone>(source_done);
    in.ctx = const_cast<ProxyWeights::SourceDone*>(done.get());
    in.source_done = [](void* ctx, uint32_t id) noexcept {
      const auto& call = *static_cast<const ProxyWeights::SourceDone*>(ctx);
      if (call) call(id);
    };
    return make<WeightSet, ProxyWeights, mi_weights>(
        [&](mi_weights** out, mi_error* error) { return owner_.table().weights_import(handle_, &in, out, error); }, done);
  }

  Result<std::unique_ptr<Buffer>> alloc(uint64_t size_bytes) override {
    return make<Buffer, ProxyBuffer, mi_buffer>(
        [&](mi_buffer** out, mi_error* error) { return owner_.table().buffer_alloc(handle_, size_bytes, out, error); }, size_bytes);
  }

  Result<KvRegionBytes> kv_region_bytes(const KvLayout& layout) override {
    const mi_kv_layout in = to_abi(layout);
    KvRegionBytes out;
    AbiError error;
    MINFER_TRY(error.status(owner_.table().kv_region_bytes(handle_, &in, &out.k, &out.v, error.out()), owner_.who));
    return out;
  }

  Status kv_copy_rows(const KvLayer& layer, std::span<const KvRowCopy> copies) override {
    const mi_kv_layout in = to_abi(layer.layout);
    AbiError error;
    return error.status(
        owner_.table().kv_copy_rows(handle_, &in, handle_of(layer.k), handle_of(layer.v),
                                    reinterpret_cast<const mi_kv_copy*>(copies.data()), static_cast<uint32_t>(copies.size()), error.out()),
        owner_.who);
  }

  Status kv_rotate(const KvLayer& layer, const KvRotation& rotation, WeightSet* weights, std::span<const KvRows> rows,
                   bool check_only) override {
    const mi_kv_layout in = to_abi(layer.layout);
    const mi_op_attrs rope = to_abi(rotation.rope);
    const mi_kv_rotation how{sizeof how, rotation.delta, &rope, rotation.freq_factors, check_only};
    mi_weights* imported = weights ? static_cast<ProxyWeights*>(weights)->handle() : nullptr;
    AbiError error;
    return error.status(
        owner_.table().kv_rotate(handle_, &in, handle_of(layer.k), &how, imported, reinterpret_cast<const mi_kv_rows*>(rows.data()),
                                 static_cast<uint32_t>(rows.size()), error.out()),
        owner_.who);
  }

  Status kv_export(const KvLayer& layer, std::span<const KvRows> rows, std::byte* k_rows, std::byte* v_rows) override {
    const mi_kv_layout in = to_abi(layer.layout);
    AbiError error;
    return error.status(
        owner_.table().kv_export(handle_, &in, handle_of(layer.k), handle_of(layer.v), reinterpret_cast<const mi_kv_rows*>(rows.data()),
                                 static_cast<uint32_t>(rows.size()), k_rows, v_rows, error.out()),
        owner_.who);
  }

  Status kv_import(const KvLayer& layer, std::span<const KvRows> rows, const std::byte* k_rows, const std::byte* v_rows) override {
    const mi_kv_layout in = to_abi(layer.layout);
    AbiError error;
    return error.status(
        owner_.table().kv_import(handle_, &in, handle_of(layer.k), handle_of(layer.v), reinterpret_cast<const mi_kv_rows*>(rows.data()),
                                 static_cast<uint32_t>(rows.size()), k_rows, v_rows, error.out()),
        owner_.who);
  }

  Result<std::unique_ptr<Plan>> create_plan(const SplitView& view, WeightSet* weights) override {
    const AbiGraphView graph(view, handle_of);
    mi_weights* imported = weights ? static_cast<ProxyWeights*>(weights)->handle() : nullptr;
    return make<Plan, ProxyPlan, mi_plan>(
        [&](mi_plan** out, mi_error* error) { return owner_.table().plan_create(handle_, graph.get(), imported, out, error); });
  }

  Status sync() override {
    AbiError error;
    return error.status(owner_.table().sync(handle_, error.out()), owner_.who);
  }

 private:
  // Calls a function of the table that makes an object, and wraps what it made.
  template <class Interface, class Proxy, class Handle, class Call, class... Extra>
  Result<std::unique_ptr<Interface>> make(Call&& call, Extra... extra) {
    Handle* handle = nullptr;
    AbiError error;
    MINFER_TRY(error.status(call(&handle, error.out()), owner_.who));
    if (!handle) return internal_error("{}: the plugin reported success and gave no object", owner_.who);
    return std::unique_ptr<Interface>(std::make_unique<Proxy>(owner_, handle, extra...));
  }

  Owner owner_;
  mi_device* handle_;
  DeviceInfo info_;
};

}  // namespace

Result<std::vector<std::unique_ptr<Device>>> open_devices(const std::shared_ptr<OpenPlugin>& plugin) {
  const Owner owner{plugin, text("backend {}", plugin->name())};
  const uint32_t count = owner.table().device_count(plugin->self());
  if (count == 0) return not_found("it found no device on this machine");
  std::vector<std::unique_ptr<Device>> devices;
  for (uint32_t i = 0; i < count; ++i) {
    mi_device* handle = nullptr;
    AbiError error;
    MINFER_TRY(error.status(owner.table().device_open(plugin->self(), i, &handle, error.out()), text("device {}", i)));
    if (!handle) return internal_error("device {}: the plugin reported success and gave no device", i);
    auto device = std::make_unique<ProxyDevice>(owner, handle);
    MINFER_TRY(device->read_info());
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace minfer::plugin
