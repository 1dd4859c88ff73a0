// Qwen2 (also Qwen2.5 and Qwen2.5-Coder): a llama-like decoder with biases on q, k and v. Technical report: arXiv 2407.10671.
#pragma once

#include <vector>

#include "minfer/plugin/blocks.hpp"
#include "minfer/plugin/hparams.hpp"

namespace qwen2 {

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

sdk::HParams read_hparams(const sdk::Metadata& metadata);

// Names every weight in `table`.
Weights list_weights(const sdk::HParams& hparams, const sdk::Metadata& metadata, sdk::WeightTable& table);

class Qwen2 final : public sdk::Model {
 public:
  explicit Qwen2(const sdk::Metadata& metadata)
      : hparams_(read_hparams(metadata)), weights_(list_weights(hparams_, metadata, table_)) {}

  sdk::ModelInfo info() const override;
  const sdk::WeightTable& weights() const override { return table_; }
  void build(const sdk::GraphParams& params, sdk::GraphBuilder& b) const override;

 private:
  sdk::HParams hparams_;
  sdk::WeightTable table_;
  Weights weights_;
};

}  // namespace qwen2
