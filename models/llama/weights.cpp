// The tensors of a llama file by name, with the shape each must have.
#include "llama.hpp"

namespace llama {

Weights list_weights(const sdk::HParams& h, const sdk::Metadata& metadata, sdk::WeightTable& table) {
  const uint64_t n_embd = h.n_embd;
  const uint64_t n_q = uint64_t{h.n_head} * h.head_dim;
  const uint64_t n_kv = uint64_t{h.n_head_kv} * h.head_dim;
  const bool tied = !metadata.find_tensor("output.weight");

  Weights w;
  w.token_embd = table.add("token_embd.weight", MI_LAYER_EMBEDDING,
                           tied ? MI_ROLE_EMBEDDING | MI_ROLE_OUTPUT | MI_ROLE_MATRIX : MI_ROLE_EMBEDDING, {n_embd, h.n_vocab});
  // Llama 3.1 and later: one divisor per rotated pair, shared by all layers.
  sdk::Weight freq_factors;
  if (metadata.find_tensor("rope_freqs.weight")) freq_factors = table.vector("rope_freqs.weight", 0, h.head_dim / 2);
  for (uint32_t il = 0; il < h.n_layers; ++il) {
    const auto name = [il](const char* part) { return sdk::join("blk.", il, '.', part); };
    LayerWeights layer;
    layer.attn_norm = table.vector(name("attn_norm.weight"), il, n_embd);
    layer.attn.wq = table.matrix(name("attn_q.weight"), il, n_embd, n_q);
    layer.attn.wk = table.matrix(name("attn_k.weight"), il, n_embd, n_kv);
    layer.attn.wv = table.matrix(name("attn_v.weight"), il, n_embd, n_kv);
    layer.attn.rope_freq_factors = freq_factors;
    layer.attn.wo = table.matrix(name("attn_output.weight"), il, n_q, n_embd);
    layer.ffn_norm = table.vector(name("ffn_norm.weight"), il, n_embd);
    layer.ffn.w_gate = table.matrix(name("ffn_gate.weight"), il, n_embd, h.n_ff);
    layer.ffn.w_up = table.matrix(name("ffn_up.weight"), il, n_embd, h.n_ff);
    layer.ffn.w_down = table.matrix(name("ffn_down.weight"), il, h.n_ff, n_embd);
    w.layers.push_back(layer);
  }
  w.output_norm = table.vector("output_norm.weight", MI_LAYER_OUTPUT, n_embd);
  w.output = tied ? w.token_embd
                  : table.add("output.weight", MI_LAYER_OUTPUT, MI_ROLE_OUTPUT | MI_ROLE_MATRIX, {n_embd, h.n_vocab});
  return w;
}

}  // namespace llama
