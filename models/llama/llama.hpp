// Llama (also Llama 2 and 3, SmolLM and others of that shape): the decoder that the rest of the family varies. Papers: arXiv
// 2302.13971, 2307.09288, 2407.21783. GGUF files hold q and k permuted for interleaved rotation.
#pragma once

#include <vector>

#include "minfer/plugin/blocks.hpp"
#include "minfer/plugin/hparams.hpp"

namespace llama {

namespace sdk = minfer::sdk;

struct LayerWeights {
  sdk::Weight attn_norm;  // [n_embd]
  sdk::AttentionWeights attn;
  sdk::Weight ffn_norm;  // [n_embd]
  sdk::FfnWeights ffn;
};

struct Weights {
  sdk::Weight token_embd;  // [n_embd, n_vocab]
  std::vector<LayerWeights> layers;
  sdk::Weight output_norm;  // [n_embd]
  sdk::Weight output;       // [n_embd, n_vocab]; token_embd itself where the file ties them
};

// Names every weight in `table`.
Weights list_weights(const sdk::HParams& hparams, const sdk::Metadata& metadata, sdk::WeightTable& table);

class Llama final : public sdk::Model {
 public:
  explicit Llama(const sdk::Metadata& metadata)
      : hparams_(sdk::read_hparams(metadata, "llama")), weights_(list_weights(hparams_, metadata, table_)) {}

  sdk::ModelInfo info() const override;
  const sdk::WeightTable& weights() const override { return table_; }
  void build(const sdk::GraphParams& params, sdk::GraphBuilder& b) const override;

 private:
  sdk::HParams hparams_;
  sdk::WeightTable table_;
  Weights weights_;
};

}  // namespace llama
