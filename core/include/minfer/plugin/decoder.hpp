// minfer plugin SDK: the decoder that most open models share, whole: tensors by name, and one forward pass. An architecture that
// differs in the switches of DecoderTraits is a plugin of a few lines; one that differs elsewhere writes its own Model from the
// parts of blocks.hpp, with this file as its pattern.
//
// Pre-norm, rotary positions, grouped-query attention, SwiGLU: arXiv 2302.13971. Tensor names: the GGUF specification.
#ifndef MINFER_PLUGIN_DECODER_HPP_
#define MINFER_PLUGIN_DECODER_HPP_

#include <cmath>
#include <vector>

#include "minfer/plugin/blocks.hpp"
#include "minfer/plugin/hparams.hpp"

MINFER_SDK_BEGIN

struct DecoderTraits {
  const char* arch = "";  // value of general.architecture, and prefix of the metadata keys
  uint32_t rope_kind = MI_ROPE_SPLIT_HALVES;
  bool qkv_bias = false;
  bool qk_norm = false;            // attn_q_norm and attn_k_norm: each head of q and k is normed before the rotation
  bool head_size_in_file = false;  // attention.key_length, which may differ from embedding_length / head_count
};

class DecoderModel final : public Model {
 public:
  DecoderModel(const Metadata& metadata, const DecoderTraits& traits)
      : traits_(traits), hparams_(read_hparams(metadata, traits.arch, {traits.head_size_in_file, true})) {
    list_weights(metadata);
  }

  ModelInfo info() const override {
    return {hparams_.n_layers, hparams_.n_embd, hparams_.n_vocab, hparams_.n_ctx_train, hparams_.n_head_kv, hparams_.head_dim};
  }
  const WeightTable& weights() const override { return table_; }

  // n = n_tokens rows of the batch, r = n_out rows whose logits are wanted; shapes are feature-fastest.
  void build(const GraphParams& params, GraphBuilder& b) const override {
    const float eps = hparams_.rms_eps;
    const AttentionShape shape = attention_shape();
    const Batch batch = declare_inputs(b, params);
    b.set_layer(MI_LAYER_EMBEDDING);
    Value x = b.embedding(token_embd_, batch.token_ids);  // [n_embd, n]

    for (uint32_t il = 0; il < hparams_.n_layers; ++il) {
      const Layer& w = layers_[il];
      const bool last = il + 1 == hparams_.n_layers;
      b.set_layer(il);

      // Attention over everything the row's sequence holds so far.
      Value h = b.rms_norm(x, w.attn_norm, eps);  // [n_embd, n]
      if (last && params.n_out == 0) return store_kv(b, shape, w.attn, h, batch);
      Value h_q = h;
      Rows rows = batch.all;
      if (last && batch.cut) {
        h_q = b.get_rows(h, batch.out_rows);  // [n_embd, r]
        x = b.get_rows(x, batch.out_rows);    // [n_embd, r]
        rows = batch.out;
      }
      x = b.add(x, attention_block(b, shape, w.attn, h, h_q, rows, batch));

      // Feed-forward.
      h = b.rms_norm(x, w.ffn_norm, eps);
      x = b.add(x, swiglu_ffn(b, w.ffn, h));
    }
    output_head(b, x, output_norm_, eps, output_);  // [n_vocab, r]
  }

 private:
  struct Layer {
    Weight attn_norm;  // [n_embd]
    AttentionWeights attn;
    Weight ffn_norm;  // [n_embd]
    FfnWeights ffn;
  };

  AttentionShape attention_shape() const {
    AttentionShape shape;
    shape.n_head = hparams_.n_head;
    shape.n_head_kv = hparams_.n_head_kv;
    shape.head_dim = hparams_.head_dim;
    shape.scale = static_cast<float>(hparams_.rope_scaling.score_scale / std::sqrt(static_cast<double>(hparams_.head_dim)));
    shape.rope.kind = traits_.rope_kind;
    shape.rope.freq_base = hparams_.rope_freq_base;
    shape.rope.freq_scale = hparams_.rope_scaling.freq_scale;
    shape.qk_norm_eps = hparams_.rms_eps;
    return shape;
  }

  void list_weights(const Metadata& metadata) {
    const uint64_t n_embd = hparams_.n_embd;
    const uint64_t n_q = uint64_t{hparams_.n_head} * hparams_.head_dim;
    const uint64_t n_kv = uint64_t{hparams_.n_head_kv} * hparams_.head_dim;
    const bool tied = !metadata.find_tensor("output.weight");

    token_embd_ = table_.add("token_embd.weight", MI_LAYER_EMBEDDING,
                             tied ? MI_ROLE_EMBEDDING | MI_ROLE_OUTPUT | MI_ROLE_MATRIX : MI_ROLE_EMBEDDING, {n_embd, hparams_.n_vocab});
    Weight freq_factors;  // of all layers
    if (metadata.find_tensor("rope_freqs.weight"))
      freq_factors = table_.vector("rope_freqs.weight", 0, hparams_.head_dim / 2);
    else if (!hparams_.rope_scaling.freq_factors.empty())
      freq_factors = table_.constant("rope scaling", 0, hparams_.rope_scaling.freq_factors);
    for (uint32_t il = 0; il < hparams_.n_layers; ++il) {
      const auto name = [il](const char* part) { return join("blk.", il, '.', part); };
      Layer layer;
      layer.attn_norm = table_.vector(name("attn_norm.weight"), il, n_embd);
      layer.attn.wq = table_.matrix(name("attn_q.weight"), il, n_embd, n_q);
      layer.attn.wk = table_.matrix(name("attn_k.weight"), il, n_embd, n_kv);
      layer.attn.wv = table_.matrix(name("attn_v.weight"), il, n_embd, n_kv);
      if (traits_.qkv_bias) {
        layer.attn.bq = table_.vector(name("attn_q.bias"), il, n_q);
        layer.attn.bk = table_.vector(name("attn_k.bias"), il, n_kv);
        layer.attn.bv = table_.vector(name("attn_v.bias"), il, n_kv);
      }
      if (traits_.qk_norm) {
        layer.attn.q_norm = table_.vector(name("attn_q_norm.weight"), il, hparams_.head_dim);
        layer.attn.k_norm = table_.vector(name("attn_k_norm.weight"), il, hparams_.head_dim);
      }
      layer.attn.rope_freq_factors = freq_factors;
      layer.attn.wo = table_.matrix(name("attn_output.weight"), il, n_q, n_embd);
      layer.ffn_norm = table_.vector(name("ffn_norm.weight"), il, n_embd);
      layer.ffn.w_gate = table_.matrix(name("ffn_gate.weight"), il, n_embd, hparams_.n_ff);
      layer.ffn.w_up = table_.matrix(name("ffn_up.weight"), il, n_embd, hparams_.n_ff);
      layer.ffn.w_down = table_.matrix(name("ffn_down.weight"), il, hparams_.n_ff, n_embd);
      layers_.push_back(layer);
    }
    output_norm_ = table_.vector("output_norm.weight", MI_LAYER_OUTPUT, n_embd);
    output_ =
        tied ? token_embd_ : table_.add("output.weight", MI_LAYER_OUTPUT, MI_ROLE_OUTPUT | MI_ROLE_MATRIX, {n_embd, hparams_.n_vocab});
  }

  DecoderTraits traits_;
  HParams hparams_;
  WeightTable table_;
  Weight token_embd_;  // [n_embd, n_vocab]
  std::vector<Layer> layers_;
  Weight output_norm_;  // [n_embd]
  Weight output_;       // [n_embd, n_vocab]; token_embd itself where the file ties them
};

// The plugin of such an architecture: derive, and pass the traits.
class DecoderArchitecture : public Architecture {
 public:
  explicit DecoderArchitecture(const DecoderTraits& traits) : traits_(traits) {}
  uint32_t match(const Metadata& metadata) const override {
    return metadata.find_string("general.architecture") == std::string_view(traits_.arch) ? 100 : 0;
  }
  std::unique_ptr<Model> create(const Metadata& metadata) const override { return std::make_unique<DecoderModel>(metadata, traits_); }

 private:
  DecoderTraits traits_;
};

MINFER_SDK_END

#endif
