/* minfer plugin ABI: the table of a model architecture. It reads metadata, names its weights and emits graphs.
 *
 * build must be a pure function of the model and the parameters: the host keeps graphs and reuses one whenever the
 * parameters are equal. Nothing that changes from step to step (positions, token ids, how much is cached) may shape it.
 */
#ifndef MINFER_ABI_ARCH_H_
#define MINFER_ABI_ARCH_H_

#include "minfer/abi/backend.h" /* MI_ROLE_* */
#include "minfer/abi/graph.h"

typedef struct mi_model mi_model;

typedef struct mi_tensor_info {
  uint32_t struct_size;
  uint32_t dtype;
  uint32_t n_dims;
  uint32_t reserved;
  uint64_t dims[4];
} mi_tensor_info;

/* Read access to a model file. The getters return MI_OK, MI_NOT_FOUND (no such key) or MI_INVALID_ARGUMENT (another type, or a
 * value that does not fit); with an error text that names the key. get_u64 takes every type of whole numbers, get_f64 every type of
 * numbers. Strings stay valid as long as the model file. */
typedef struct mi_metadata_v1 {
  uint32_t struct_size;
  uint32_t reserved;
  void* ctx;
  int32_t (*get_u64)(void* ctx, mi_string key, uint64_t* out, mi_error* error);
  int32_t (*get_f64)(void* ctx, mi_string key, double* out, mi_error* error);
  int32_t (*get_bool)(void* ctx, mi_string key, uint32_t* out, mi_error* error);
  int32_t (*get_string)(void* ctx, mi_string key, mi_string* out, mi_error* error);
  int32_t (*get_tensor)(void* ctx, mi_string name, mi_tensor_info* out, mi_error* error); /* MI_NOT_FOUND: absent */
} mi_metadata_v1;

typedef struct mi_model_info {
  uint32_t struct_size;
  uint32_t n_layers;
  uint32_t n_embd;
  uint32_t n_vocab;
  uint32_t n_ctx_train; /* the longest context the model was made for */
  uint32_t n_head_kv;   /* shape of the KV rows, the same in every layer */
  uint32_t head_dim;
  uint32_t reserved;
} mi_model_info;

/* One weight that graphs refer to. dims is what the file must hold, or the load is refused naming both shapes. With `values` the
 * weight is the model's own: f32, as many as dims say, copied during the call; the file is not asked, and name is for people. */
typedef struct mi_weight_desc {
  uint32_t struct_size;
  uint32_t roles; /* MI_ROLE_* */
  mi_string name; /* tensor name in the file */
  uint32_t layer;
  uint32_t n_dims;
  uint64_t dims[4];
  const float* values; /* NULL: the tensor of that name in the file */
} mi_weight_desc;

/* add gives the weight its id: 0, 1, 2 ... in the order of the calls. */
typedef struct mi_weight_sink_v1 {
  uint32_t struct_size;
  uint32_t reserved;
  void* ctx;
  int32_t (*add)(void* ctx, const mi_weight_desc* desc, uint32_t* out_id, mi_error* error);
} mi_weight_sink_v1;

/* The part of the graph parameters that an architecture may read. */
typedef struct mi_graph_params {
  uint32_t struct_size;
  uint32_t n_tokens; /* rows of the batch */
  uint32_t n_out;    /* rows whose logits are wanted; 0: build nothing behind the last layer's KV store */
  uint32_t reserved;
} mi_graph_params;

/* The host's graph under construction. Values are numbered by the host; shapes are inferred and checked there. The first
 * error sticks: later calls do nothing and return it, so a builder may check once at its end. */
typedef struct mi_builder_v1 {
  uint32_t struct_size;
  uint32_t reserved;
  void* ctx;
  int32_t (*input)(void* ctx, uint32_t kind, uint32_t* out_value, mi_error* error);
  int32_t (*weight)(void* ctx, uint32_t weight_id, uint32_t* out_value, mi_error* error);
  /* dims is read by MI_OP_VIEW only (the new shape); NULL elsewhere. */
  int32_t (*add_node)(void* ctx, uint32_t op, uint32_t layer, const uint32_t* inputs, uint32_t n_inputs, const mi_op_attrs* attrs,
                      const uint64_t* dims, uint32_t n_dims, uint32_t* outputs, uint32_t n_outputs, mi_error* error);
  int32_t (*output)(void* ctx, uint32_t value, mi_error* error);
} mi_builder_v1;

typedef struct mi_arch_v1 {
  uint32_t struct_size;
  uint32_t reserved;
  /* 0: not mine; otherwise the higher score wins. Reads general.architecture. Never fails. */
  uint32_t (*match)(void* self, const mi_metadata_v1* metadata);
  /* Validates every hyper-parameter that later arithmetic relies on. */
  int32_t (*create)(void* self, const mi_metadata_v1* metadata, mi_model** out, mi_error* error);
  void (*destroy)(mi_model* model);
  int32_t (*info)(mi_model* model, mi_model_info* out, mi_error* error);
  int32_t (*weights)(mi_model* model, const mi_weight_sink_v1* sink, mi_error* error);
  int32_t (*build)(mi_model* model, const mi_graph_params* params, const mi_builder_v1* builder, mi_error* error);
} mi_arch_v1;

#endif
