/* minfer plugin ABI: the graph as both kinds of plugin see it. An architecture emits nodes, a backend runs them.
 *
 * Shapes are feature-fastest: dims[0] is contiguous. A hidden state is [n_embd, n_rows]; a weight matrix of a MatMul
 * is [n_in, n_out], row-major by output, as GGUF stores it.
 */
#ifndef MINFER_ABI_GRAPH_H_
#define MINFER_ABI_GRAPH_H_

#include "minfer/abi/base.h"

/* ---- Operations. Inputs are listed in order; "?" may be MI_NONE. Each reads the attributes named behind it. ---- */

/* source [n, m] (weight or activation), ids I32 [r] -> [n, r]: row ids[i] of source, as f32. */
#define MI_OP_GET_ROWS 1u
/* x [n, ...], weight [n] -> x / sqrt(mean(x^2) + eps) * weight, over dims[0]. eps */
#define MI_OP_RMS_NORM 2u
/* x [n_in, r], weight [n_in, n_out], bias? [n_out] -> [n_out, r] */
#define MI_OP_MATMUL 3u
/* x [n_head*head_dim, r], positions I32 [r], freq_factors? [head_dim/2] -> same shape, rotated.
 * Angle of pair i at position p: p * freq_scale * freq_base^(-2i/head_dim) / freq_factors[i].
 * n_head, head_dim, rope_kind, rope_freq_base, rope_freq_scale */
#define MI_OP_ROPE 4u
/* k [n_head_kv*head_dim, r], v same, positions I32 [r], row_seq I32 [r], block_table I32 [blocks_per_seq, max_seqs] -> no output.
 * Row i goes to cell block_table[row_seq[i]][p/64]*64 + p%64 of the node's layer, p = positions[i]. A row whose row_seq is
 * -1 is padding and stores nothing. A position outside the table, or a table entry of -1, is MI_INVALID_ARGUMENT.
 * n_head_kv, head_dim */
#define MI_OP_KV_STORE 5u
/* q [n_head*head_dim, r], positions, row_seq, block_table -> [n_head*head_dim, r].
 * Row i attends to cells max(0, p+1-window)..p of its own sequence (window 0: all) in the node's layer, which an earlier
 * MI_OP_KV_STORE (or FUSED_QKV) of the same layer and step has filled. Rows of padding have undefined output.
 * n_head, n_head_kv, head_dim, attn_scale, window */
#define MI_OP_ATTENTION 6u
#define MI_OP_ADD 7u  /* a, b of one shape -> a + b */
#define MI_OP_MUL 8u  /* a, b of one shape -> a * b */
#define MI_OP_SILU 9u /* x -> x / (1 + exp(-x)) */
/* x -> another shape over the same memory, starting view_offset elements in. Never run: the output's memory is the input's. */
#define MI_OP_VIEW 10u

/* Made by the host's fusion pass only, and only where `supports` said yes for this code. Same numbers as the chain. */
#define MI_OP_SILU_MUL 32u /* gate, up -> silu(gate) * up */
/* x, wq, wk, wv, bq?, bk?, bv?, positions, row_seq, block_table, freq_factors? -> q
 * = MATMUL of each, ROPE of q and k, KV_STORE of k and v; q is [n_head*head_dim, r]. Attributes of ROPE and KV_STORE;
 * n_head is q's. */
#define MI_OP_FUSED_QKV 33u
/* x, w_gate, w_up -> silu(x*w_gate) * (x*w_up) */
#define MI_OP_FUSED_FFN 34u

#define MI_ROPE_SPLIT_HALVES 0u /* pair i = elements i and i + head_dim/2 of a head ("neox") */
#define MI_ROPE_INTERLEAVED 1u  /* pair i = elements 2i and 2i+1 of a head ("norm") */

/* One struct for all operations: an operation reads the fields named at its code, the rest are 0. */
typedef struct mi_op_attrs {
  uint32_t struct_size;
  uint32_t n_head;
  uint32_t n_head_kv;
  uint32_t head_dim;
  float eps;
  uint32_t rope_kind;
  float rope_freq_base;
  float rope_freq_scale;
  float attn_scale;
  uint32_t window;
  uint64_t view_offset;
} mi_op_attrs;

/* ---- Graph inputs: filled by the host before each step. All are MI_TYPE_I32. ---- */
#define MI_INPUT_TOKEN_IDS 0u     /* [n_tokens] */
#define MI_INPUT_POSITIONS 1u     /* [n_tokens] position of each row inside its own sequence */
#define MI_INPUT_ROW_SEQ 2u       /* [n_tokens] which sequence a row belongs to, -1 = padding */
#define MI_INPUT_BLOCK_TABLE 3u   /* [ceil(n_ctx/64), max_seqs] block of each 64 positions, -1 = none yet */
#define MI_INPUT_OUT_ROWS 4u      /* [n_out] rows of the batch whose logits are wanted, ascending */
#define MI_INPUT_OUT_POSITIONS 5u /* [n_out] their positions */
#define MI_INPUT_OUT_ROW_SEQ 6u   /* [n_out] their sequences */
#define MI_INPUT_COUNT 7u

/* ---- What a backend sees: nodes in execution order over a table of values. ---- */
#define MI_VALUE_ACTIVATION 0u /* made by a node, or copied here from another device */
#define MI_VALUE_INPUT 1u      /* index = MI_INPUT_*; bytes arrive with each step */
#define MI_VALUE_WEIGHT 2u     /* index = weight id of the imported list */

/* The value must lie in its memory once its node has run: the host or another split reads it, or a node of this view reads it under
 * another value index (a MI_OP_VIEW of it). A value without the flag may stay out of memory altogether, as long as the nodes
 * that name it get it. Never set in `supports`. */
#define MI_VALUE_KEPT 1u

typedef struct mi_buffer mi_buffer; /* a backend's memory object */

typedef struct mi_value {
  uint32_t struct_size;
  uint32_t kind;
  uint32_t dtype;
  uint32_t n_dims;
  uint64_t dims[4]; /* unused ones are 1 */
  uint32_t index;
  uint32_t flags;    /* MI_VALUE_KEPT */
  mi_buffer* buffer; /* activations in plan_create: where it lies. NULL in `supports` */
  uint64_t offset_bytes;
  uint64_t size_bytes; /* of activations and inputs; 0 for weights (mi_weight holds theirs) */
} mi_value;

/* layer: a transformer block, or one of these. */
#define MI_LAYER_EMBEDDING 0xfffffffeu
#define MI_LAYER_OUTPUT 0xfffffffdu

typedef struct mi_node {
  uint32_t struct_size;
  uint32_t op;
  uint32_t layer;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t reserved;
  const uint32_t* inputs; /* indices into values, MI_NONE where an optional one is absent */
  const uint32_t* outputs;
  const mi_op_attrs* attrs;
} mi_node;

/* K and V of one layer are two regions of n_blocks blocks of 64 positions. How rows lie inside is the backend's own. */
#define MI_KV_BLOCK_POSITIONS 64u
typedef struct mi_kv_layout {
  uint32_t struct_size;
  uint32_t format; /* MI_TYPE_F32, MI_TYPE_F16 or MI_TYPE_Q8_0 */
  uint32_t n_head_kv;
  uint32_t head_dim;
  uint32_t n_blocks;
  uint32_t reserved;
} mi_kv_layout;

typedef struct mi_kv_layer {
  uint32_t struct_size;
  uint32_t layer;
  mi_kv_layout layout;
  mi_buffer* k; /* NULL in `supports` */
  mi_buffer* v;
} mi_kv_layer;

typedef struct mi_graph_view {
  uint32_t struct_size;
  uint32_t n_values;
  uint32_t n_nodes;
  uint32_t n_kv_layers;
  uint64_t value_stride;
  uint64_t node_stride;
  uint64_t kv_layer_stride;
  const mi_value* values;
  const mi_node* nodes;
  const mi_kv_layer* kv_layers;
  uint64_t uid;        /* of the built graph; never reused in this process; 0 in `supports` */
  uint64_t generation; /* of the scratch buffer the offsets belong to */
  uint32_t n_ctx;      /* no position of a run reaches this */
  uint32_t reserved;
} mi_graph_view;

#endif
