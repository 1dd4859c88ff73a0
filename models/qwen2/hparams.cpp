// What a qwen2 file says about its shape. The common keys and their checks are minfer/plugin/hparams.hpp.
#include "qwen2.hpp"

namespace qwen2 {

sdk::HParams read_hparams(const sdk::Metadata& metadata) { return sdk::read_hparams(metadata, "qwen2"); }

sdk::ModelInfo Qwen2::info() const {
  sdk::ModelInfo info;
  info.n_layers = hparams_.n_layers;
  info.n_embd = hparams_.n_embd;
  info.n_vocab = hparams_.n_vocab;
  info.n_ctx_train = hparams_.n_ctx_train;
  info.n_head_kv = hparams_.n_head_kv;
  info.head_dim = hparams_.head_dim;
  return info;
}

}  // namespace qwen2
