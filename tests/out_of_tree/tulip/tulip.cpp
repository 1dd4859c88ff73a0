// An architecture of another project, written out: files that say general.architecture "tulip" hold what qwen2 files hold (biases on
// q, k and v, one matrix for embedding and output), so a test can compare the two. Shapes are feature-fastest, n rows of the batch, r
// rows whose logits are wanted.
#include <cmath>

#include "minfer/plugin/blocks.hpp"
#include "minfer/plugin/hparams.hpp"

namespace {

namespace sdk = minfer::sdk;

class TulipModel final : public sdk::Model {
 public:
  explicit TulipModel(const sdk::Metadata& metadata) : h_(sdk::read_hparams(metadata, "tulip")) {
    const uint64_t n_q = uint64_t{h_.n_head} * h_.head_dim, n_kv = uint64_t{h_.n_head_kv} * h_.head_dim;
    if (metadata.find_tensor("output.weight")) sdk::fail(MI_UNSUPPORTED, "output.weight: a tulip model has no matrix of its own for it");
    embedding_ =
        weights_.add("token_embd.weight", MI_LAYER_EMBEDDING, MI_ROLE_EMBEDDING | MI_ROLE_OUTPUT | MI_ROLE_MATRIX, {h_.n_embd, h_.n_vocab});
    for (uint32_t l = 0; l < h_.n_layers; ++l) {
      const auto name = [l](const char* part) { return sdk::join("blk.", l, ".", part); };
      Layer layer;
      layer.attn_norm = weights_.vector(name("attn_norm.weight"), l, h_.n_embd);
      layer.attn.wq = weights_.matrix(name("attn_q.weight"), l, h_.n_embd, n_q);
      layer.attn.wk = weights_.matrix(name("attn_k.weight"), l, h_.n_embd, n_kv);
      layer.attn.wv = weights_.matrix(name("attn_v.weight"), l, h_.n_embd, n_kv);
      layer.attn.bq = weights_.vector(name("attn_q.bias"), l, n_q);
      layer.attn.bk = weights_.vector(name("attn_k.bias"), l, n_kv);
      layer.attn.bv = weights_.vector(name("attn_v.bias"), l, n_kv);
      layer.attn.wo = weights_.matrix(name("attn_output.weight"), l, n_q, h_.n_embd);
      layer.ffn_norm = weights_.vector(name("ffn_norm.weight"), l, h_.n_embd);
      layer.ffn.w_gate = weights_.matrix(name("ffn_gate.weight"), l, h_.n_embd, h_.n_ff);
      layer.ffn.w_up = weights_.matrix(name("ffn_up.weight"), l, h_.n_embd, h_.n_ff);
      layer.ffn.w_down = weights_.matrix(name("ffn_down.weight"), l, h_.n_ff, h_.n_embd);
      layers_.push_back(layer);
    }
    output_norm_ = weights_.vector("output_norm.weight", MI_LAYER_OUTPUT, h_.n_embd);
  }

  sdk::ModelInfo info() const override { return {h_.n_layers, h_.n_embd, h_.n_vocab, h_.n_ctx_train, h_.n_head_kv, h_.head_dim}; }
  const sdk::WeightTable& weights() const override { return weights_; }

  void build(const sdk::GraphParams& params, sdk::GraphBuilder& b) const override {
    sdk::AttentionShape shape;
    shape.n_head = h_.n_head;
    shape.n_head_kv = h_.n_head_kv;
    shape.head_dim = h_.head_dim;
    shape.scale = 1 / std::sqrt(static_cast<float>(h_.head_dim));
    shape.rope = {MI_ROPE_SPLIT_HALVES, h_.rope_freq_base, 1};

    const sdk::Batch batch = sdk::declare_inputs(b, params);
    b.set_layer(MI_LAYER_EMBEDDING);
    sdk::Value x = b.embedding(embedding_, batch.token_ids);  // [n_embd, n]
    for (uint32_t l = 0; l < h_.n_layers; ++l) {
      const Layer& w = layers_[l];
      b.set_layer(l);
      sdk::Value h = b.rms_norm(x, w.attn_norm, h_.rms_eps);  // [n_embd, n]
      sdk::Value h_q = h;
      sdk::Rows rows = batch.all;
      if (l + 1 == h_.n_layers) {  // behind the last KV, only rows whose logits are wanted
        if (params.n_out == 0) return sdk::store_kv(b, shape, w.attn, h, batch);
        if (batch.cut) {
          h_q = b.get_rows(h, batch.out_rows);  // [n_embd, r]
          x = b.get_rows(x, batch.out_rows);    // [n_embd, r]
          rows = batch.out;
        }
      }
      x = b.add(x, sdk::attention_block(b, shape, w.attn, h, h_q, rows, batch));
      x = b.add(x, sdk::swiglu_ffn(b, w.ffn, b.rms_norm(x, w.ffn_norm, h_.rms_eps)));
    }
    sdk::output_head(b, x, output_norm_, h_.rms_eps, embedding_);  // [n_vocab, r]
  }

 private:
  struct Layer {
    sdk::Weight attn_norm;
    sdk::AttentionWeights attn;
    sdk::Weight ffn_norm;
    sdk::FfnWeights ffn;
  };

  sdk::HParams h_;
  sdk::WeightTable weights_;
  sdk::Weight embedding_;  // [n_embd, n_vocab]
  std::vector<Layer> layers_;
  sdk::Weight output_norm_;  // [n_embd]
};

class Tulip final : public sdk::Architecture {
 public:
  explicit Tulip(const sdk::Host&) {}
  uint32_t match(const sdk::Metadata& metadata) const override { return metadata.find_string("general.architecture") == "tulip" ? 100 : 0; }
  std::unique_ptr<sdk::Model> create(const sdk::Metadata& metadata) const override { return std::make_unique<TulipModel>(metadata); }
};

}  // namespace

MINFER_EXPORT_ARCH(Tulip, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
