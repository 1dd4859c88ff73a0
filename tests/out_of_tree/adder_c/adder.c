/* The backend of ../adder in C11 over minfer/abi alone: additions and multiplications of activations in memory of the process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "minfer/abi/abi_hash.h"
#include "minfer/abi/plugin.h"

/* The ABI leaves its handles open; here they are these. */
struct mi_buffer {
  unsigned char* bytes;
  uint64_t size_bytes;
};

typedef struct call {
  uint32_t op;
  const float* a;
  const float* b;
  float* out;
  uint64_t n;
} call;

typedef struct backend {
  const mi_host_v1* host;
} backend;

struct mi_device {
  const mi_host_v1* host;
  int multiply;
  uint64_t n_run;
};

struct mi_plan {
  mi_device* device;
  uint32_t n_calls;
  call calls[];
};

static int32_t fail(mi_error* error, int32_t code, const char* text) {
  if (error && error->struct_size >= sizeof *error) {
    error->code = code;
    snprintf(error->text, sizeof error->text, "%s", text);
  }
  return code;
}

static const mi_node* node_at(const mi_graph_view* graph, uint32_t i) {
  return (const mi_node*)((const char*)graph->nodes + i * graph->node_stride);
}

static const mi_value* value_at(const mi_graph_view* graph, uint32_t id) {
  return (const mi_value*)((const char*)graph->values + id * graph->value_stride);
}

/* ---- Devices ---- */

static uint32_t device_count(void* self) {
  (void)self;
  return 1;
}

static int32_t device_open(void* self, uint32_t index, mi_device** out, mi_error* error) {
  const mi_host_v1* host = ((backend*)self)->host;
  (void)index;
  mi_device* device = calloc(1, sizeof *device);
  if (!device) return fail(error, MI_OUT_OF_MEMORY, "out of memory");
  device->host = host;
  device->multiply = 1;
  const mi_string key = {"multiply", 8};
  mi_string value;
  if (host->config_get(host->ctx, key, &value) == MI_OK) {
    if (value.size == 5 && memcmp(value.data, "false", 5) == 0) {
      device->multiply = 0;
    } else if (value.size != 4 || memcmp(value.data, "true", 4) != 0) {
      free(device);
      return fail(error, MI_INVALID_ARGUMENT, "option multiply is neither true nor false");
    }
  }
  *out = device;
  return MI_OK;
}

static void device_close(mi_device* device) {
  char line[64];
  const int size = snprintf(line, sizeof line, "adder_c ran %llu operations", (unsigned long long)device->n_run);
  const mi_string text = {line, (uint64_t)size};
  device->host->log(device->host->ctx, MI_LOG_INFO, text);
  free(device);
}

static int32_t device_info(mi_device* device, mi_device_info* out, mi_error* error) {
  (void)error;
  out->flags = MI_DEVICE_HOST;
  out->memory_total_bytes = 0;
  out->memory_free_bytes = 0;
  snprintf(out->name, sizeof out->name, "adder_c");
  snprintf(out->description, sizeof out->description, device->multiply ? "adds and multiplies" : "adds");
  return MI_OK;
}

static int32_t supports(mi_device* device, const mi_graph_view* graph, uint8_t* node_mask, mi_error* error) {
  (void)error;
  for (uint32_t i = 0; i < graph->n_nodes; ++i) {
    const uint32_t op = node_at(graph, i)->op;
    node_mask[i] = op == MI_OP_ADD || (op == MI_OP_MUL && device->multiply);
  }
  return MI_OK;
}

/* ---- Weights and KV: no operation here reads any, so the host asks for none. ---- */

static int32_t weights_import(mi_device* device, const mi_weight_list* list, mi_weights** out, mi_error* error) {
  (void)device, (void)list, (void)out;
  return fail(error, MI_UNSUPPORTED, "no operation of this backend reads a weight");
}
static void weights_free(mi_weights* weights) { (void)weights; }
static uint64_t weights_bytes(mi_weights* weights) {
  (void)weights;
  return 0;
}
static int32_t kv_region_bytes(mi_device* device, const mi_kv_layout* layout, uint64_t* k, uint64_t* v, mi_error* error) {
  (void)device, (void)layout, (void)k, (void)v;
  return fail(error, MI_UNSUPPORTED, "this backend keeps no KV");
}
static int32_t kv_copy_rows(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_copy* copies,
                            uint32_t n_copies, mi_error* error) {
  (void)device, (void)layout, (void)k, (void)v, (void)copies, (void)n_copies;
  return fail(error, MI_UNSUPPORTED, "this backend keeps no KV");
}
static int32_t kv_rotate(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, const mi_kv_rotation* rotation, mi_weights* weights,
                         const mi_kv_rows* rows, uint32_t n_ranges, mi_error* error) {
  (void)device, (void)layout, (void)k, (void)rotation, (void)weights, (void)rows, (void)n_ranges;
  return fail(error, MI_UNSUPPORTED, "this backend keeps no KV");
}
static int32_t kv_export(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_rows* rows,
                         uint32_t n_ranges, void* k_rows, void* v_rows, mi_error* error) {
  (void)device, (void)layout, (void)k, (void)v, (void)rows, (void)n_ranges, (void)k_rows, (void)v_rows;
  return fail(error, MI_UNSUPPORTED, "this backend keeps no KV");
}
static int32_t kv_import(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_rows* rows,
                         uint32_t n_ranges, const void* k_rows, const void* v_rows, mi_error* error) {
  (void)device, (void)layout, (void)k, (void)v, (void)rows, (void)n_ranges, (void)k_rows, (void)v_rows;
  return fail(error, MI_UNSUPPORTED, "this backend keeps no KV");
}

/* ---- Memory ---- */

static int32_t buffer_alloc(mi_device* device, uint64_t size_bytes, mi_buffer** out, mi_error* error) {
  (void)device;
  mi_buffer* buffer = malloc(sizeof *buffer);
  unsigned char* bytes = calloc(1, size_bytes ? size_bytes : 1);
  if (!buffer || !bytes) {
    free(buffer);
    free(bytes);
    return fail(error, MI_OUT_OF_MEMORY, "out of memory");
  }
  buffer->bytes = bytes;
  buffer->size_bytes = size_bytes;
  *out = buffer;
  return MI_OK;
}

static void buffer_free(mi_buffer* buffer) {
  free(buffer->bytes);
  free(buffer);
}

static void* buffer_host_ptr(mi_buffer* buffer) { return buffer->bytes; }

static int inside(const mi_buffer* buffer, uint64_t offset, uint64_t size_bytes) {
  return offset <= buffer->size_bytes && size_bytes <= buffer->size_bytes - offset;
}

static int32_t buffer_write(mi_buffer* buffer, uint64_t offset, const void* src, uint64_t size_bytes, mi_error* error) {
  if (!inside(buffer, offset, size_bytes)) return fail(error, MI_INVALID_ARGUMENT, "a write beyond the buffer");
  if (size_bytes) memcpy(buffer->bytes + offset, src, size_bytes);
  return MI_OK;
}

static int32_t buffer_read(mi_buffer* buffer, uint64_t offset, void* dst, uint64_t size_bytes, mi_error* error) {
  if (!inside(buffer, offset, size_bytes)) return fail(error, MI_INVALID_ARGUMENT, "a read beyond the buffer");
  if (size_bytes) memcpy(dst, buffer->bytes + offset, size_bytes);
  return MI_OK;
}

/* ---- Plans ---- */

static float* f32(const mi_value* value) { return (float*)(void*)(value->buffer->bytes + value->offset_bytes); }

static int32_t plan_create(mi_device* device, const mi_graph_view* graph, mi_weights* weights, mi_plan** out, mi_error* error) {
  (void)weights;
  mi_plan* plan = malloc(sizeof *plan + graph->n_nodes * sizeof(call));
  if (!plan) return fail(error, MI_OUT_OF_MEMORY, "out of memory");
  plan->device = device;
  plan->n_calls = graph->n_nodes;
  for (uint32_t i = 0; i < graph->n_nodes; ++i) {
    const mi_node* node = node_at(graph, i);
    const mi_value* sum = value_at(graph, node->outputs[0]);
    plan->calls[i].op = node->op;
    plan->calls[i].a = f32(value_at(graph, node->inputs[0]));
    plan->calls[i].b = f32(value_at(graph, node->inputs[1]));
    plan->calls[i].out = f32(sum);
    plan->calls[i].n = sum->size_bytes / sizeof(float);
  }
  *out = plan;
  return MI_OK;
}

static void plan_destroy(mi_plan* plan) { free(plan); }

static int32_t plan_run(mi_plan* plan, const mi_step* step, mi_error* error) {
  (void)step, (void)error;
  for (uint32_t c = 0; c < plan->n_calls; ++c) {
    const call* const it = &plan->calls[c];
    for (uint64_t i = 0; i < it->n; ++i) it->out[i] = it->op == MI_OP_ADD ? it->a[i] + it->b[i] : it->a[i] * it->b[i];
    ++plan->device->n_run;
  }
  return MI_OK;
}

static int32_t sync(mi_device* device, mi_error* error) {
  (void)device, (void)error;
  return MI_OK;
}

/* ---- The plugin ---- */

static const mi_backend_v1 table = {
    .struct_size = sizeof(mi_backend_v1),
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_info = device_info,
    .supports = supports,
    .weights_import = weights_import,
    .weights_free = weights_free,
    .weights_bytes = weights_bytes,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .buffer_host_ptr = buffer_host_ptr,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .kv_region_bytes = kv_region_bytes,
    .kv_copy_rows = kv_copy_rows,
    .kv_rotate = kv_rotate,
    .kv_export = kv_export,
    .kv_import = kv_import,
    .plan_create = plan_create,
    .plan_destroy = plan_destroy,
    .plan_run = plan_run,
    .sync = sync,
};

static int32_t open_backend(const mi_host_v1* host, void** out_self, const void** out_table, mi_error* error) {
  backend* self = malloc(sizeof *self);
  if (!self) return fail(error, MI_OUT_OF_MEMORY, "out of memory");
  self->host = host;
  *out_self = self;
  *out_table = &table;
  return MI_OK;
}

static void close_backend(void* self) { free(self); }

static const mi_plugin_desc description = {
    .struct_size = sizeof(mi_plugin_desc),
    .abi_major = MI_ABI_MAJOR,
    .abi_minor = MI_ABI_MINOR,
    .min_host_minor = 0,
    .kind = MI_PLUGIN_BACKEND,
    .name = MINFER_PLUGIN_NAME,
    .version = MINFER_PLUGIN_VERSION,
    .build = MINFER_PLUGIN_BUILD,
    .abi_hash = MI_ABI_HASH,
    .open = open_backend,
    .close = close_backend,
};

__attribute__((visibility("default"))) const mi_plugin_desc* MI_PLUGIN_QUERY(void) { return &description; }
