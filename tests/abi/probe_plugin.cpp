// One plugin source, many defects: each build sets one PROBE_* macro. Written against the ABI alone, without the SDK.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "minfer/abi/abi_hash.h"
#include "minfer/abi/plugin.h"

#ifndef PROBE_ANSWER
#define PROBE_ANSWER 0
#endif
#ifndef PROBE_KIND
#define PROBE_KIND MI_PLUGIN_BACKEND
#endif
#ifndef PROBE_MAJOR
#define PROBE_MAJOR MI_ABI_MAJOR
#endif
#ifndef PROBE_NEEDS_MINOR
#define PROBE_NEEDS_MINOR 0
#endif
#ifndef PROBE_HASH
#define PROBE_HASH MI_ABI_HASH
#endif
#ifndef PROBE_DEVICES
#define PROBE_DEVICES 1
#endif

// A symbol that two plugins export with different answers, and that each must see as its own.
extern "C" __attribute__((visibility("default"))) int probe_answer() { return PROBE_ANSWER; }

namespace {

// Tells that code of this library ran.
struct Touch {
  Touch() {
    if (const char* path = std::getenv("MINFER_PROBE_TOUCH"))
      if (std::FILE* file = std::fopen(path, "a")) std::fclose(file);
  }
} touch;

#ifdef PROBE_UNDEFINED
}
int probe_nowhere();
namespace {
int use_nowhere = probe_nowhere();
#endif

#ifdef PROBE_NEEDED
}
int probe_needed();
namespace {
int use_needed = probe_needed();
#endif

struct Probe {
  const mi_host_v1* host;
};

uint32_t device_count(void*) { return PROBE_DEVICES; }
int32_t device_open(void* self, uint32_t, mi_device** out, [[maybe_unused]] mi_error* error) {
#ifdef PROBE_DEVICE_FAILS
  std::snprintf(error->text, sizeof error->text, "another process holds it");
  return error->code = MI_DEVICE_LOST;
#endif
  mi_string value;
  const auto* host = static_cast<Probe*>(self)->host;
  host->config_get(host->ctx, {"threads", 7}, &value);
  *out = reinterpret_cast<mi_device*>(self);
  return MI_OK;
}
void device_close(mi_device*) {}
int32_t device_info(mi_device*, mi_device_info* out, mi_error*) {
  std::snprintf(out->name, sizeof out->name, "probe%d", probe_answer());
  out->description[0] = 0;
  out->flags = 0;
  return MI_OK;
}
int32_t supports(mi_device*, const mi_graph_view*, uint8_t*, mi_error*) { return MI_OK; }
int32_t weights_import(mi_device*, const mi_weight_list*, mi_weights**, mi_error*) { return MI_UNSUPPORTED; }
void weights_free(mi_weights*) {}
uint64_t weights_bytes(mi_weights*) { return 0; }
int32_t buffer_alloc(mi_device*, uint64_t, mi_buffer**, mi_error*) { return MI_OUT_OF_MEMORY; }
void buffer_free(mi_buffer*) {}
void* buffer_host_ptr(mi_buffer*) { return nullptr; }
int32_t buffer_write(mi_buffer*, uint64_t, const void*, uint64_t, mi_error*) { return MI_UNSUPPORTED; }
int32_t buffer_read(mi_buffer*, uint64_t, void*, uint64_t, mi_error*) { return MI_UNSUPPORTED; }
int32_t kv_region_bytes(mi_device*, const mi_kv_layout*, uint64_t*, uint64_t*, mi_error*) { return MI_UNSUPPORTED; }
int32_t kv_copy_rows(mi_device*, const mi_kv_layout*, mi_buffer*, mi_buffer*, const mi_kv_copy*, uint32_t, mi_error*) {
  return MI_UNSUPPORTED;
}
int32_t kv_rotate(mi_device*, const mi_kv_layout*, mi_buffer*, const mi_kv_rotation*, mi_weights*, const mi_kv_rows*, uint32_t, mi_error*) {
  return MI_UNSUPPORTED;
}
int32_t kv_export(mi_device*, const mi_kv_layout*, mi_buffer*, mi_buffer*, const mi_kv_rows*, uint32_t, void*, void*, mi_error*) {
  return MI_UNSUPPORTED;
}
int32_t kv_import(mi_device*, const mi_kv_layout*, mi_buffer*, mi_buffer*, const mi_kv_rows*, uint32_t, const void*, const void*,
                  mi_error*) {
  return MI_UNSUPPORTED;
}
int32_t plan_create(mi_device*, const mi_graph_view*, mi_weights*, mi_plan**, mi_error*) { return MI_UNSUPPORTED; }
void plan_destroy(mi_plan*) {}
#ifndef PROBE_LACKS_FUNCTION
int32_t plan_run(mi_plan*, const mi_step*, mi_error*) { return MI_UNSUPPORTED; }
#else
constexpr int32_t (*plan_run)(mi_plan*, const mi_step*, mi_error*) = nullptr;
#endif
int32_t sync(mi_device*, mi_error*) { return MI_OK; }

// As a newer plugin has it: fields behind those that this core knows.
#ifdef PROBE_LONGER
struct Table {
  mi_backend_v1 known;
  int32_t (*appended)(void*) = nullptr;
};
struct Descriptor {
  mi_plugin_desc known;
  const char* appended = nullptr;
};
#else
struct Table {
  mi_backend_v1 known;
};
struct Descriptor {
  mi_plugin_desc known;
};
#endif

#ifdef PROBE_SHORT_TABLE
constexpr uint32_t kTableSize = offsetof(mi_backend_v1, plan_run);
#else
constexpr uint32_t kTableSize = sizeof(Table);
#endif
const Table kTable = {{
    kTableSize,      0,
    device_count,    device_open,
    device_close,    device_info,
    supports,        weights_import,
    weights_free,    weights_bytes,
    buffer_alloc,    buffer_free,
    buffer_host_ptr, buffer_write,
    buffer_read,     kv_region_bytes,
    kv_copy_rows,    kv_rotate,
    kv_export,       kv_import,
    plan_create,     plan_destroy,
    plan_run,        sync,
}};

int32_t open(const mi_host_v1* host, void** out_self, const void** out_table, [[maybe_unused]] mi_error* error) {
#ifdef PROBE_THROWS
  throw std::runtime_error("thrown in open");
#endif
#ifdef PROBE_FAILS
  std::snprintf(error->text, sizeof error->text, "driver 12.4 or newer is needed, found 11.8");
  return error->code = MI_UNSUPPORTED;
#endif
  *out_self = new Probe{host};
#ifdef PROBE_NO_TABLE
  *out_table = nullptr;
#else
  *out_table = &kTable;
#endif
  return MI_OK;
}
[[maybe_unused]] void close(void* self) { delete static_cast<Probe*>(self); }

#ifdef PROBE_NO_CLOSE
constexpr void (*kClose)(void*) = nullptr;
#else
constexpr void (*kClose)(void*) = close;
#endif
#ifdef PROBE_SHORT_DESCRIPTOR
constexpr uint32_t kDescriptorSize = offsetof(mi_plugin_desc, open);
#else
constexpr uint32_t kDescriptorSize = sizeof(Descriptor);
#endif
[[maybe_unused]] const Descriptor kDesc = {
    {kDescriptorSize, PROBE_MAJOR, MI_ABI_MINOR, PROBE_NEEDS_MINOR, PROBE_KIND, 0, "probe", "1.2.0", "test", PROBE_HASH, open, kClose}};

}  // namespace

#if defined(PROBE_NULL_DESCRIPTOR)
extern "C" __attribute__((visibility("default"))) const mi_plugin_desc* MI_PLUGIN_QUERY(void) { return nullptr; }
#elif defined(PROBE_THROWS_IN_QUERY)
extern "C" __attribute__((visibility("default"))) const mi_plugin_desc* MI_PLUGIN_QUERY(void) { throw std::runtime_error("in query"); }
#elif !defined(PROBE_NO_SYMBOL)
extern "C" __attribute__((visibility("default"))) const mi_plugin_desc* MI_PLUGIN_QUERY(void) { return &kDesc.known; }
#endif
