// minfer plugin SDK: the hyper-parameters that decoder-only transformers share, read from a file's metadata and validated so
// that later arithmetic needs no checks. Keys are "<architecture>.<name>" as the GGUF specification lists them.
//
// Everything that would change the numbers and is not implemented is refused by name, never ignored.
#ifndef MINFER_PLUGIN_HPARAMS_HPP_
#define MINFER_PLUGIN_HPARAMS_HPP_

#include "minfer/plugin/rope_scaling.hpp"

MINFER_SDK_BEGIN

struct HParams {
  uint32_t n_layers = 0;
  uint32_t n_embd = 0;
  uint32_t n_ff = 0;
  uint32_t n_vocab = 0;
  uint32_t n_ctx_train = 0;
  uint32_t n_head = 0;
  uint32_t n_head_kv = 0;
  uint32_t head_dim = 0;
  float rms_eps = 0;
  float rope_freq_base = 0;
  RopeScaling rope_scaling;
};

// Where architectures differ in what a file may say.
struct HParamRules {
  // attention.key_length and value_length are there and give the size of a head, whatever embedding_length / head_count is.
  bool head_size_in_file = false;
  // The architecture applies HParams::rope_scaling; without it a file that has any is refused.
  bool rope_scaling = false;
};

namespace hparams_detail {

// An option of the file that no code here implements: fine where absent or 0.
inline void refuse_unless_zero(const Metadata& metadata, const std::string& key) {
  const std::optional<double> value = metadata.find_f64(key);
  if (value && *value != 0) fail(MI_UNSUPPORTED, key, " is ", *value, ": not supported");
}

}  // namespace hparams_detail

// Requires token_embd.weight and, for each layer claimed, blk.N.attn_norm.weight.
inline HParams read_hparams(const Metadata& metadata, const std::string& arch, const HParamRules& rules = {}) {
  constexpr uint32_t kMax = 0x7fffffff;  // rows, positions and ids are I32
  const std::string prefix = arch + ".";
  const auto key = [&](const char* name) { return prefix + name; };
  HParams h;

  h.n_embd = metadata.u32(key("embedding_length"), 1, kMax);
  const TensorInfo embd = metadata.tensor("token_embd.weight");  // [n_embd, n_vocab]
  if (embd.n_dims != 2 || embd.dims[0] != h.n_embd)
    fail(MI_INVALID_ARGUMENT, key("embedding_length"), " is ", h.n_embd, ", but token_embd.weight has ", embd.n_dims,
         " dimensions and rows of ", embd.dims[0]);
  if (embd.dims[1] == 0 || embd.dims[1] > kMax)
    fail(MI_INVALID_ARGUMENT, "token_embd.weight has ", embd.dims[1], " rows: must be from 1 to ", kMax);
  h.n_vocab = static_cast<uint32_t>(embd.dims[1]);
  const uint32_t vocab_size = metadata.u32_or(key("vocab_size"), h.n_vocab, 1, kMax);
  if (vocab_size != h.n_vocab)
    fail(MI_INVALID_ARGUMENT, key("vocab_size"), " is ", vocab_size, ", but token_embd.weight has ", h.n_vocab, " rows");

  // Counted against the file before anything is sized by it.
  h.n_layers = metadata.u32(key("block_count"), 1, kMax);
  for (uint32_t layer = 0; layer < h.n_layers; ++layer) {
    const std::string name = join("blk.", layer, ".attn_norm.weight");
    if (!metadata.find_tensor(name)) fail(MI_INVALID_ARGUMENT, key("block_count"), " is ", h.n_layers, ", but the file has no ", name);
  }

  h.n_ctx_train = metadata.u32(key("context_length"), 1, kMax);
  h.n_ff = metadata.u32(key("feed_forward_length"), 1, kMax);

  h.n_head = metadata.u32(key("attention.head_count"), 1, kMax);
  h.n_head_kv = metadata.u32_or(key("attention.head_count_kv"), h.n_head, 1, kMax);
  if (h.n_head % h.n_head_kv != 0)
    fail(MI_INVALID_ARGUMENT, key("attention.head_count"), " ", h.n_head, " is not divisible by ", key("attention.head_count_kv"), " ",
         h.n_head_kv);
  if (!rules.head_size_in_file && h.n_embd % h.n_head != 0)
    fail(MI_INVALID_ARGUMENT, key("embedding_length"), " ", h.n_embd, " is not divisible by ", key("attention.head_count"), " ", h.n_head);
  h.head_dim = rules.head_size_in_file ? metadata.u32(key("attention.key_length"), 2, 65536) : h.n_embd / h.n_head;
  if (rules.head_size_in_file) metadata.u32(key("attention.value_length"), 1, kMax);  // its default is not the key's length
  if (h.head_dim % 2 != 0 || h.n_head > kMax / h.head_dim)
    fail(MI_INVALID_ARGUMENT, key("attention.head_count"), " is ", h.n_head, " with heads of ", h.head_dim,
         " elements: a head must have an even number, and all heads fewer than 2^31");
  for (const char* name : {"attention.key_length", "attention.value_length", "rope.dimension_count"}) {
    const uint32_t value = metadata.u32_or(key(name), h.head_dim, 1, kMax);
    if (value != h.head_dim) fail(MI_UNSUPPORTED, key(name), " is ", value, ": must equal the head size ", h.head_dim);
  }

  h.rms_eps = metadata.positive_f32(key("attention.layer_norm_rms_epsilon"));
  h.rope_freq_base = metadata.positive_f32_or(key("rope.freq_base"), 10000.0f);
  h.rope_scaling = read_rope_scaling(metadata, prefix, h.head_dim, h.rope_freq_base, h.n_ctx_train);
  if (!rules.rope_scaling && !h.rope_scaling.none())
    fail(MI_UNSUPPORTED, key("rope.scaling"), ": the architecture does not scale positions");
  for (const char* name : {"attention.sliding_window", "attention.clamp_kqv", "attention.max_alibi_bias", "expert_count",
                           "attn_logit_softcapping", "final_logit_softcapping"})
    hparams_detail::refuse_unless_zero(metadata, key(name));
  return h;
}

MINFER_SDK_END

#endif
