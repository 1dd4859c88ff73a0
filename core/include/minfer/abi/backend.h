/* minfer plugin ABI: the table of a backend.
 *
 * Order of calls: plugin open -> device_open -> weights_import, buffer_alloc -> plan_create -> plan_run; undone in reverse
 * by the host. Calls on one device come from one thread at a time; different devices may be used at the same time.
 * Every function must be present unless "(optional)" stands at it.
 */
#ifndef MINFER_ABI_BACKEND_H_
#define MINFER_ABI_BACKEND_H_

#include "minfer/abi/graph.h"

typedef struct mi_device mi_device;
typedef struct mi_weights mi_weights; /* everything imported by one weights_import */
typedef struct mi_plan mi_plan;       /* one prepared split */

#define MI_DEVICE_HOST 1u /* its buffers are ordinary memory of this process */

typedef struct mi_device_info {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t memory_total_bytes; /* 0 = unknown */
  uint64_t memory_free_bytes;
  char name[64];         /* "cpu", "gpu:0" */
  char description[192]; /* for people: model of the device, what was chosen */
} mi_device_info;

/* What a weight is for. A tied tensor carries both embedding and output. */
#define MI_ROLE_MATRIX 1u    /* second input of MATMUL */
#define MI_ROLE_VECTOR 2u    /* norm weight, bias, frequency factors */
#define MI_ROLE_EMBEDDING 4u /* first input of GET_ROWS */
#define MI_ROLE_OUTPUT 8u    /* the last MATMUL; comes with MI_ROLE_MATRIX */

typedef struct mi_weight {
  uint32_t struct_size;
  uint32_t id;
  mi_string name;
  uint32_t dtype;
  uint32_t n_dims;
  uint64_t dims[4];
  uint32_t roles;
  uint32_t layer;
  const void* data; /* GGUF layout, row-major; stays valid until weights_free */
  uint64_t size_bytes;
} mi_weight;

/* The weights placed on a device. A backend may keep borrowing `data`, or pack it into its own layout and then call
 * source_done(ctx, id) once: the host drops those pages of the file. The list is valid during weights_import only; source_done and its
 * ctx until weights_free, so that a backend may pack a weight when it is first used. source_done is called from the thread that is
 * inside weights_import or plan_run. */
typedef struct mi_weight_list {
  uint32_t struct_size;
  uint32_t n_weights;
  uint64_t weight_stride;
  const mi_weight* weights;
  void* ctx;
  void (*source_done)(void* ctx, uint32_t id);
} mi_weight_list;

typedef struct mi_span {
  const void* data;
  uint64_t size_bytes;
} mi_span;

/* One run. inputs[i] holds the bytes of graph input i (MI_INPUT_*); those that the split does not read are {NULL, 0}.
 * The struct and the array of spans are valid during plan_run only; the bytes, and should_stop with its stop_ctx, until the run is done
 * (sync). should_stop may be NULL; a backend that polls it between phases and gets non-zero fails the run with MI_CANCELLED and
 * leaves nothing running. */
typedef struct mi_step {
  uint32_t struct_size;
  uint32_t n_inputs;
  const mi_span* inputs;
  void* stop_ctx;
  int32_t (*should_stop)(void* stop_ctx);
} mi_step;

/* Copies n_rows K rows and V rows between blocks of one layer. Each range lies inside its block. The copies of a call take effect row
 * after row in their order: a row may be read and written again later (rows slide down over those that were copied before
 * them), so a backend that works on many at once orders them itself. All ranges are judged before anything is written. */
typedef struct mi_kv_copy {
  uint32_t src_block;
  uint32_t src_row;
  uint32_t dst_block;
  uint32_t dst_row;
  uint32_t n_rows;
} mi_kv_copy;

/* Rows of a region that lie inside one block. */
typedef struct mi_kv_rows {
  uint32_t block;
  uint32_t first_row;
  uint32_t n_rows;
} mi_kv_rows;

/* Turns stored keys by `delta` positions, as if each had been stored that many positions later: pair i of a head by the angle
 * delta * freq_scale * freq_base^(-2i/head_dim) / freq_factors[i], after MI_OP_ROPE. A key is read as attention sees it, turned in
 * f32 and stored again in the region's format. With check_only nothing is written: the call says whether it would succeed. */
typedef struct mi_kv_rotation {
  uint32_t struct_size;
  int32_t delta;
  const mi_op_attrs* rope; /* of the MI_OP_ROPE that turned the keys of this layer */
  uint32_t freq_factors;   /* id of its weight of frequency factors, MI_NONE where there is none */
  uint32_t check_only;
} mi_kv_rotation;

typedef struct mi_backend_v1 {
  uint32_t struct_size;
  uint32_t reserved;

  /* self is what the plugin's open returned. The devices to use, as the plugin's options say: the host opens them all, so that a
   * plugin that finds several may offer the best one alone. 0: there is none on this machine. */
  uint32_t (*device_count)(void* self);
  int32_t (*device_open)(void* self, uint32_t index, mi_device** out, mi_error* error);
  void (*device_close)(mi_device* device);
  int32_t (*device_info)(mi_device* device, mi_device_info* out, mi_error* error);

  /* node_mask[i] = 1 where node i can be run on this device as it stands (operation, types, shapes, KV format). */
  int32_t (*supports)(mi_device* device, const mi_graph_view* graph, uint8_t* node_mask, mi_error* error);

  int32_t (*weights_import)(mi_device* device, const mi_weight_list* list, mi_weights** out, mi_error* error);
  void (*weights_free)(mi_weights* weights);
  uint64_t (*weights_bytes)(mi_weights* weights); /* memory of its own, borrowed bytes not counted */

  int32_t (*buffer_alloc)(mi_device* device, uint64_t size_bytes, mi_buffer** out, mi_error* error);
  void (*buffer_free)(mi_buffer* buffer);
  void* (*buffer_host_ptr)(mi_buffer* buffer); /* NULL where the host cannot touch the memory */
  int32_t (*buffer_write)(mi_buffer* buffer, uint64_t offset, const void* src, uint64_t size_bytes, mi_error* error);
  int32_t (*buffer_read)(mi_buffer* buffer, uint64_t offset, void* dst, uint64_t size_bytes, mi_error* error);

  /* Bytes of one region (K and V may differ). */
  int32_t (*kv_region_bytes)(mi_device* device, const mi_kv_layout* layout, uint64_t* k_bytes, uint64_t* v_bytes, mi_error* error);
  int32_t (*kv_copy_rows)(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_copy* copies,
                          uint32_t n_copies, mi_error* error);
  /* weights may be NULL where rotation->freq_factors is MI_NONE. Everything is judged before anything is written: ranges, a
   * rotation out of range, a turned key that the format cannot hold. MI_UNSUPPORTED: this backend does not turn keys, and
   * the host then refuses to shift a context. */
  int32_t (*kv_rotate)(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, const mi_kv_rotation* rotation, mi_weights* weights,
                       const mi_kv_rows* rows, uint32_t n_ranges, mi_error* error);

  /* Rows of one layer in the form that does not depend on a backend: k_rows and v_rows hold the rows of all ranges one after the other,
   * each [n_head_kv][head_dim] in the layout's format, little endian; q8_0 as groups of 32 { f16 d, int8 q[32] }, a value being
   * f32(d) * q. Export waits for the work before it and is done when it returns; what import has written is exported again bit
   * for bit. All ranges are judged before anything is written. MI_UNSUPPORTED: the KV of this backend cannot be saved. */
  int32_t (*kv_export)(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_rows* rows, uint32_t n_ranges,
                       void* k_rows, void* v_rows, mi_error* error);
  int32_t (*kv_import)(mi_device* device, const mi_kv_layout* layout, mi_buffer* k, mi_buffer* v, const mi_kv_rows* rows, uint32_t n_ranges,
                       const void* k_rows, const void* v_rows, mi_error* error);

  /* A plan fixes weights, KV regions and offsets; it must not outlive weights and KV regions. The buffer of its activations may be freed
   * before it (the host's scratch memory has moved): it is then not run again, only destroyed. One run at a time per plan. plan_run and
   * kv_copy_rows may return before the work is done: later runs, copies, reads and writes on that device are ordered after it; sync waits
   * for all. What fails later is reported by a later call on the device, at the latest by the one that waits (sync, buffer_read), once;
   * work that was ordered behind it may be left undone. The host waits, after a failure too, before it destroys a plan or frees a buffer
   * that work may still use. */
  int32_t (*plan_create)(mi_device* device, const mi_graph_view* graph, mi_weights* weights, mi_plan** out, mi_error* error);
  void (*plan_destroy)(mi_plan* plan);
  int32_t (*plan_run)(mi_plan* plan, const mi_step* step, mi_error* error);
  int32_t (*sync)(mi_device* device, mi_error* error);
} mi_backend_v1;

#endif
