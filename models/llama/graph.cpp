// One forward pass. n = n_tokens rows of the batch, r = n_out rows whose logits are wanted; shapes are feature-fastest.
#include <cmath>

#include "llama.hpp"

namespace llama {

sdk::ModelInfo Llama::info() const {
  sdk::ModelInfo info;
  info.n_layers = hparams_.n_layers;
  info.n_embd = hparams_.n_embd;
  info.n_vocab = hparams_.n_vocab;
  info.n_ctx_train = hparams_.n_ctx_train;
  info.n_head_kv = hparams_.n_head_kv;
  info.head_dim = hparams_.head_dim;
  return info;
}

void Llama::build(const sdk::GraphParams& params, sdk::GraphBuilder& b) const {
  const float eps = hparams_.rms_eps;
  sdk::AttentionShape shape;
  shape.n_head = hparams_.n_head;
  shape.n_head_kv = hparams_.n_head_kv;
  shape.head_dim = hparams_.head_dim;
  shape.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hparams_.head_dim)));
  shape.rope.kind = MI_ROPE_INTERLEAVED;
  shape.rope.freq_base = hparams_.rope_freq_base;

  const sdk::Batch batch = sdk::declare_inputs(b, params);
  b.set_layer(MI_LAYER_EMBEDDING);
  sdk::Value x = b.embedding(weights_.token_embd, batch.token_ids);  // [n_embd, n]

  for (uint32_t il = 0; il < hparams_.n_layers; ++il) {
    const LayerWeights& w = weights_.layers[il];
    const bool last = il + 1 == hparams_.n_layers;
    b.set_layer(il);

    // Attention over everything the row's sequence holds so far.
    sdk::Value h = b.rms_norm(x, w.attn_norm, eps);  // [n_embd, n]
    if (last && params.n_out == 0) return sdk::store_kv(b, shape, w.attn, h, batch);
    sdk::Value h_q = h;
    sdk::Rows rows = batch.all;
    if (last && batch.cut) {
      h_q = b.get_rows(h, batch.out_rows);  // [n_embd, r]
      x = b.get_rows(x, batch.out_rows);    // [n_embd, r]
      rows = batch.out;
    }
    x = b.add(x, sdk::attention_block(b, shape, w.attn, h, h_q, rows, batch));

    // Feed-forward.
    h = b.rms_norm(x, w.ffn_norm, eps);
    x = b.add(x, sdk::swiglu_ffn(b, w.ffn, h));
  }
  sdk::output_head(b, x, weights_.output_norm, eps, weights_.output);  // [n_vocab, r]
}

}  // namespace llama
