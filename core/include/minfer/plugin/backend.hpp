// minfer plugin SDK for backends. Derive from these classes in your library, then write once at file scope:
//
//   MINFER_EXPORT_BACKEND(MyBackend, "name", "1.2.0")
//
// What each call must do stands in minfer/abi/backend.h; here is only what C++ adds. Calls on one device come from one thread at a
// time. The host destroys what it asked for in reverse order: plans, buffers and weights, devices, the backend.
// Thrown exceptions fail the call (common.hpp). The null backend is a complete example to clone.
#ifndef MINFER_PLUGIN_BACKEND_HPP_
#define MINFER_PLUGIN_BACKEND_HPP_

#include <memory>

#include "minfer/plugin/common.hpp"

MINFER_SDK_BEGIN

// The nodes given to a device, over their table of values. A view lives as long as the call that receives it; of a plan, copy
// what you keep (or keep pointers to your own buffers and weights).
class GraphView {
 public:
  explicit GraphView(const mi_graph_view* view) : view_(view) {}

  uint32_t n_nodes() const { return view_->n_nodes; }
  uint32_t n_values() const { return view_->n_values; }
  const mi_node& node(uint32_t i) const { return element(view_->nodes, view_->node_stride, i); }
  const mi_value& value(uint32_t id) const { return element(view_->values, view_->value_stride, id); }
  // Input i of a node, or nullptr where an optional one is absent or the list is shorter.
  const mi_value* input(const mi_node& node, uint32_t i) const {
    return i < node.n_inputs && node.inputs[i] != MI_NONE ? &value(node.inputs[i]) : nullptr;
  }
  const mi_value& output(const mi_node& node, uint32_t i = 0) const { return value(node.outputs[i]); }
  // The K and V regions of a layer, or nullptr where no node touches them.
  const mi_kv_layer* kv_layer(uint32_t layer) const {
    for (uint32_t i = 0; i < view_->n_kv_layers; ++i) {
      const mi_kv_layer& entry = element(view_->kv_layers, view_->kv_layer_stride, i);
      if (entry.layer == layer) return &entry;
    }
    return nullptr;
  }
  uint64_t uid() const { return view_->uid; }
  uint64_t generation() const { return view_->generation; }
  uint32_t n_ctx() const { return view_->n_ctx; }
  const mi_graph_view* abi() const { return view_; }

 private:
  const mi_graph_view* view_;
};

// Says that the bytes of a weight were copied or packed and are not read again. May be kept until the weights are freed, and called
// inside import_weights and Plan::run.
class SourceDone {
 public:
  explicit SourceDone(const mi_weight_list* list) : ctx_(list->ctx), done_(list->source_done) {}
  void operator()(uint32_t id) const {
    if (done_) done_(ctx_, id);
  }

 private:
  void* ctx_;
  void (*done_)(void* ctx, uint32_t id);
};

class WeightList {
 public:
  explicit WeightList(const mi_weight_list* list) : list_(list) {}

  uint32_t size() const { return list_->n_weights; }
  const mi_weight& operator[](uint32_t i) const { return element(list_->weights, list_->weight_stride, i); }
  SourceDone source_done() const { return SourceDone(list_); }
  void source_done(uint32_t id) const { source_done()(id); }

 private:
  const mi_weight_list* list_;
};

// What is bound at run time: the bytes of the graph inputs.
class Step {
 public:
  explicit Step(const mi_step* step) : step_(step) {}

  // MI_INPUT_*; {nullptr, 0} where this split does not read it.
  mi_span input(uint32_t kind) const { return kind < step_->n_inputs ? step_->inputs[kind] : mi_span{nullptr, 0}; }
  // Poll between phases, never per element. True: stop, leave nothing running, throw Error(MI_CANCELLED, ...).
  bool should_stop() const { return step_->should_stop && step_->should_stop(step_->stop_ctx) != 0; }
  const mi_step* abi() const { return step_; }

 private:
  const mi_step* step_;
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual void run(const Step& step) = 0;
};

// Everything imported by one import_weights.
class Weights {
 public:
  virtual ~Weights() = default;
  // Memory of its own; borrowed bytes of the file are not counted.
  virtual uint64_t own_bytes() const noexcept { return 0; }
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  // nullptr where the host cannot touch the memory.
  virtual void* host_ptr() noexcept { return nullptr; }
  virtual void write(uint64_t offset, const void* src, uint64_t size_bytes) = 0;
  virtual void read(uint64_t offset, void* dst, uint64_t size_bytes) = 0;

  // A buffer that the host hands back (in a view, in kv_copy_rows) is one that this plugin made.
  static Buffer* from(mi_buffer* handle) { return reinterpret_cast<Buffer*>(handle); }
};

struct DeviceInfo {
  std::string name;
  std::string description;
  uint32_t flags = 0;  // MI_DEVICE_*
  uint64_t memory_total_bytes = 0;
  uint64_t memory_free_bytes = 0;
};

struct KvBytes {
  uint64_t k = 0;
  uint64_t v = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo info() = 0;
  // Sets mask[i] to 1 where node i can be run; the mask comes filled with 0. Asked with sample graphs of one and two rows: a yes
  // holds for any number of rows. No value has memory yet.
  virtual void supports(const GraphView& graph, uint8_t* mask) = 0;
  virtual std::unique_ptr<Weights> import_weights(const WeightList& list) = 0;
  virtual std::unique_ptr<Buffer> alloc(uint64_t size_bytes) = 0;
  // Asked only of a device that said yes to MI_OP_KV_STORE and MI_OP_ATTENTION.
  virtual KvBytes kv_region_bytes(const mi_kv_layout&) { throw Error(MI_UNSUPPORTED, "this backend keeps no KV"); }
  virtual void kv_copy_rows(const mi_kv_layout&, Buffer& /*k*/, Buffer& /*v*/, const mi_kv_copy*, uint32_t /*n_copies*/) {
    throw Error(MI_UNSUPPORTED, "this backend keeps no KV");
  }
  // `weights` may be nullptr where the rotation has no frequency factors. A backend without it cannot shift a context.
  virtual void kv_rotate(const mi_kv_layout&, Buffer& /*k*/, const mi_kv_rotation&, Weights* /*weights*/, const mi_kv_rows*,
                         uint32_t /*n_ranges*/) {
    throw Error(MI_UNSUPPORTED, "this backend does not turn stored keys");
  }
  // Canonical rows out of and into the regions. A backend without them cannot have its sessions saved.
  virtual void kv_export(const mi_kv_layout&, Buffer& /*k*/, Buffer& /*v*/, const mi_kv_rows*, uint32_t /*n_ranges*/, void* /*k_rows*/,
                         void* /*v_rows*/) {
    throw Error(MI_UNSUPPORTED, "this backend does not export KV rows");
  }
  virtual void kv_import(const mi_kv_layout&, Buffer& /*k*/, Buffer& /*v*/, const mi_kv_rows*, uint32_t /*n_ranges*/,
                         const void* /*k_rows*/, const void* /*v_rows*/) {
    throw Error(MI_UNSUPPORTED, "this backend does not import KV rows");
  }
  // `weights` may be nullptr where the nodes read none. The output of MI_OP_ADD, MUL, SILU and SILU_MUL may have the place of one of its
  // inputs (the whole of it, never a part): read an element before you write it. No other outputs and inputs overlap.
  virtual std::unique_ptr<Plan> create_plan(const GraphView& graph, Weights* weights) = 0;
  virtual void sync() {}
};

// One opened plugin. Its constructor takes a `const Host&`, which may be copied and kept.
class Backend {
 public:
  virtual ~Backend() = default;
  // The devices to be used, by the options given; the host opens them all.
  virtual uint32_t device_count() = 0;
  virtual std::unique_ptr<Device> open_device(uint32_t index) = 0;
};

// The C table over these classes. A handle of the ABI is a pointer to the class of the same name.
namespace backend_thunks {

template <class T, class Handle>
T& as(Handle* handle) {
  return *reinterpret_cast<T*>(handle);
}
template <class Handle, class T>
Handle* give(std::unique_ptr<T> object) {
  if (!object) throw Error(MI_INTERNAL, "the plugin returned no object");
  return reinterpret_cast<Handle*>(object.release());
}

inline uint32_t device_count(void* self) noexcept {
  try {
    return static_cast<Backend*>(self)->device_count();
  } catch (...) {
    return 0;
  }
}
inline int32_t device_open(void* self, uint32_t index, mi_device** out, mi_error* error) noexcept {
  return guarded(error, [&] { *out = give<mi_device>(static_cast<Backend*>(self)->open_device(index)); });
}
inline void device_close(mi_device* device) noexcept { delete &as<Device>(device); }
inline int32_t device_info(mi_device* device, mi_device_info* out, mi_error* error) noexcept {
  return guarded(error, [&] {
    const DeviceInfo info = as<Device>(device).info();
    out->flags = info.flags;
    out->memory_total_bytes = info.memory_total_bytes;
    out->memory_free_bytes = info.memory_free_bytes;
    copy_text(out->name, sizeof out->name, info.name);
    copy_text(out->description, sizeof out->description, info.description);
  });
}
inline int32_t supports(mi_device* device, const mi_graph_view* graph, uint8_t* mask, mi_error* error) noexcept {
  return guarded(error, [&] {
    if (graph->n_nodes > 0) std::memset(mask, 0, graph->n_nodes);
    as<Device>(device).supports(GraphView(graph), mask);
  });
}
inline int32_t weights_import(mi_device* device, const mi_weight_list* list, mi_weights** out, mi_error* error) noexcept {
  return guarded(error, [&] { *out = give<mi_weights>(as<Device>(device).import_weights(WeightList(list))); });
}
inline void weights_free(mi_weights* weights) noexcept { delete &as<Weights>(weights); }
inline uint64_t weights_bytes(mi_weights* weights) noexcept { return as<Weights>(weights).own_bytes(); }
inline int32_t buffer_alloc(mi_device* device, uint64_t size_bytes, mi_buffer** out, mi_error* error) noexcept {
  return guarded(error, [&] { *out = give<mi_buffer>(as<Device>(device).alloc(size_bytes)); });
}
inline void buffer_free(mi_buffer* buffer) noexcept { delete &as<Buffer>(buffer); }
inline void* buffer_host_ptr(mi_buffer* buffer) noexcept { return as<Buffer>(buffer).host_ptr(); }
inline int32_t buffer_write(mi_buffer* buffer, uint64_t offset, const void* src, uint64_t size_bytes, mi_error* error) noexcept {
  return guarded(error, [&] { as<Buffer>(buffer).write(offset, src, size_bytes); });
}
inline int32_t buffer_read(mi_buffer* buffer, uint64_t offset, void* dst, uint64_t size_bytes, mi_error* error) noexcept {
  return guarded(error, [&] { as<Buffer>(buffer).read(offset, dst, size_bytes); });
}
inline int32_t kv_region_bytes(mi_device* device, const mi_kv_layout* layout, uint64_t* k, uint64_t* v, mi_error* error) noexcept {
  return guarded(error, [&] {
    const KvBytes bytes = as<Device>(device).kv_region_bytes(*layout);
    *k = bytes.k;
    *v = bytes.v;
  });
}
inline int32_t kv_copy_rows(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_copy* copies,
                            uint32_t n_copies, mi_error* error) noexcept {
  return guarded(error, [&] { as<Device>(device).kv_copy_rows(*layout, as<Buffer>(k), as<Buffer>(v), copies, n_copies); });
}
inline int32_t kv_rotate(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, const mi_kv_rotation* rotation, mi_weights* weights,
                         const mi_kv_rows* rows, uint32_t n_ranges, mi_error* error) noexcept {
  return guarded(
      error, [&] { as<Device>(device).kv_rotate(*layout, as<Buffer>(k), *rotation, reinterpret_cast<Weights*>(weights), rows, n_ranges); });
}
inline int32_t kv_export(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_rows* rows,
                         uint32_t n_ranges, void* k_rows, void* v_rows, mi_error* error) noexcept {
  return guarded(error, [&] { as<Device>(device).kv_export(*layout, as<Buffer>(k), as<Buffer>(v), rows, n_ranges, k_rows, v_rows); });
}
inline int32_t kv_import(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_rows* rows,
                         uint32_t n_ranges, const void* k_rows, const void* v_rows, mi_error* error) noexcept {
  return guarded(error, [&] { as<Device>(device).kv_import(*layout, as<Buffer>(k), as<Buffer>(v), rows, n_ranges, k_rows, v_rows); });
}
inline int32_t plan_create(mi_device* device, const mi_graph_view* graph, mi_weights* weights, mi_plan** out, mi_error* error) noexcept {
  return guarded(error,
                 [&] { *out = give<mi_plan>(as<Device>(device).create_plan(GraphView(graph), reinterpret_cast<Weights*>(weights))); });
}
inline void plan_destroy(mi_plan* plan) noexcept { delete &as<Plan>(plan); }
inline int32_t plan_run(mi_plan* plan, const mi_step* step, mi_error* error) noexcept {
  return guarded(error, [&] { as<Plan>(plan).run(Step(step)); });
}
inline int32_t sync(mi_device* device, mi_error* error) noexcept {
  return guarded(error, [&] { as<Device>(device).sync(); });
}

inline constexpr mi_backend_v1 kTable = {
    sizeof(mi_backend_v1),
    0,
    device_count,
    device_open,
    device_close,
    device_info,
    supports,
    weights_import,
    weights_free,
    weights_bytes,
    buffer_alloc,
    buffer_free,
    buffer_host_ptr,
    buffer_write,
    buffer_read,
    kv_region_bytes,
    kv_copy_rows,
    kv_rotate,
    kv_export,
    kv_import,
    plan_create,
    plan_destroy,
    plan_run,
    sync,
};

}  // namespace backend_thunks

MINFER_SDK_END

#define MINFER_EXPORT_BACKEND(Class, name, version) \
  MINFER_EXPORT_PLUGIN(Class, ::minfer::sdk::Backend, ::minfer::sdk::backend_thunks::kTable, MI_PLUGIN_BACKEND, name, version)

#endif
