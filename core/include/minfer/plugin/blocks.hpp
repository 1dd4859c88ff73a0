// minfer plugin SDK: the parts of a layer that pre-norm decoders with rotary positions share. Each function emits one part; an
// architecture's build reads as the sequence of its parts (models/*/graph.cpp). Shapes: n = rows of the batch, r = rows
// still wanted.
//
// The last layer is cut: K and V are stored for all n rows, everything else works on the r = n_out rows whose logits are
// wanted. Attention of a row reads that row's q alone, so cutting before Q gives the same bits as cutting after it.
#ifndef MINFER_PLUGIN_BLOCKS_HPP_
#define MINFER_PLUGIN_BLOCKS_HPP_

#include "minfer/plugin/arch.hpp"

MINFER_SDK_BEGIN

// Where the rows of a value stand: graph inputs.
struct Rows {
  Value positions;  // I32 [n]
  Value row_seq;    // I32 [n]
  uint32_t n = 0;
};

// The inputs of a graph, all declared before its first node and in this order.
struct Batch {
  Value token_ids;  // I32 [n]
  Rows all;
  Value block_table;  // I32 [blocks_per_seq, max_seqs]
  // Where 0 < n_out < n_tokens:
  bool cut = false;
  Value out_rows;  // I32 [r], indices into the batch
  Rows out;
};

inline Batch declare_inputs(GraphBuilder& b, const GraphParams& params) {
  Batch batch;
  batch.token_ids = b.input(MI_INPUT_TOKEN_IDS);
  batch.all.positions = b.input(MI_INPUT_POSITIONS);
  batch.all.row_seq = b.input(MI_INPUT_ROW_SEQ);
  batch.all.n = params.n_tokens;
  batch.block_table = b.input(MI_INPUT_BLOCK_TABLE);
  batch.cut = params.n_out > 0 && params.n_out < params.n_tokens;
  if (batch.cut) {
    batch.out_rows = b.input(MI_INPUT_OUT_ROWS);
    batch.out.positions = b.input(MI_INPUT_OUT_POSITIONS);
    batch.out.row_seq = b.input(MI_INPUT_OUT_ROW_SEQ);
    batch.out.n = params.n_out;
  }
  return batch;
}

struct AttentionShape {
  uint32_t n_head = 0;
  uint32_t n_head_kv = 0;
  uint32_t head_dim = 0;
  float scale = 0;      // of the scores; 1/sqrt(head_dim) as a rule
  uint32_t window = 0;  // positions seen; 0: all earlier ones
  Rope rope;
  float qk_norm_eps = 0;  // read where the weights hold q_norm and k_norm
};

// A weight left default-constructed leaves its step out.
struct AttentionWeights {
  Weight wq, wk, wv;         // [n_embd, n_head*head_dim], twice [n_embd, n_head_kv*head_dim]
  Weight bq, bk, bv;         // their biases
  Weight q_norm, k_norm;     // [head_dim], applied to each head before the rotation
  Weight rope_freq_factors;  // [head_dim/2]
  Weight wo;                 // [n_head*head_dim, n_embd]
};

struct FfnWeights {
  Weight w_gate, w_up;  // [n_embd, n_ff]
  Weight w_down;        // [n_ff, n_embd]
};

// h [n_embd, n] -> [heads*head_dim, n]; normed per head where the model does so
inline Value project_heads(GraphBuilder& b, const AttentionShape& s, Value h, Weight w, Weight bias, Weight norm, uint32_t heads,
                           uint32_t n) {
  const uint64_t width = uint64_t{heads} * s.head_dim;
  Value x = b.matmul(h, w, bias);  // [heads*head_dim, n]
  if (!norm) return x;
  x = b.view(x, {s.head_dim, heads, n});
  x = b.rms_norm(x, norm, s.qk_norm_eps);
  return b.view(x, {width, n});
}

// h [n_embd, n]: K and V of every row of the batch go into the layer's KV, and nothing else is computed
inline void store_kv(GraphBuilder& b, const AttentionShape& s, const AttentionWeights& w, Value h, const Batch& batch) {
  const Rows& all = batch.all;
  Value k = project_heads(b, s, h, w.wk, w.bk, w.k_norm, s.n_head_kv, all.n);  // [n_head_kv*head_dim, n]
  Value v = b.matmul(h, w.wv, w.bv);                                           // [n_head_kv*head_dim, n]
  k = b.rope(k, all.positions, s.rope, s.n_head_kv, s.head_dim, w.rope_freq_factors);
  b.kv_store(k, v, all.positions, all.row_seq, batch.block_table, s.n_head_kv, s.head_dim);
}

// h [n_embd, n]; h_q [n_embd, r], the rows of h that `rows` describes (h itself where nothing is cut) -> [n_embd, r]
inline Value attention_block(GraphBuilder& b, const AttentionShape& s, const AttentionWeights& w, Value h, Value h_q, const Rows& rows,
                             const Batch& batch) {
  Value q = project_heads(b, s, h_q, w.wq, w.bq, w.q_norm, s.n_head, rows.n);  // [n_head*head_dim, r]
  q = b.rope(q, rows.positions, s.rope, s.n_head, s.head_dim, w.rope_freq_factors);
  store_kv(b, s, w, h, batch);
  Value o = b.attention(q, rows.positions, rows.row_seq, batch.block_table, s.n_head, s.n_head_kv, s.head_dim, s.scale,
                        s.window);  // [n_head*head_dim, r]
  return b.matmul(o, w.wo);         // [n_embd, r]
}

// x [n_embd, r] -> down(silu(gate(x)) * up(x)) [n_embd, r]
inline Value swiglu_ffn(GraphBuilder& b, const FfnWeights& w, Value x) {
  Value gate = b.silu(b.matmul(x, w.w_gate));  // [n_ff, r]
  Value up = b.matmul(x, w.w_up);              // [n_ff, r]
  return b.matmul(b.mul(gate, up), w.w_down);  // [n_embd, r]
}

// x [n_embd, r] -> logits [n_vocab, r], the graph's output
inline void output_head(GraphBuilder& b, Value x, Weight norm, float eps, Weight output) {
  b.set_layer(MI_LAYER_OUTPUT);
  x = b.rms_norm(x, norm, eps);
  b.output(b.matmul(x, output));
}

MINFER_SDK_END

#endif
