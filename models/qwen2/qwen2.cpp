// Qwen2 (also Qwen2.5 and Qwen2.5-Coder): biases on q, k and v; a head's pairs are its two halves. Technical report: arXiv 2407.10671.
#include "minfer/plugin/decoder.hpp"

namespace {

namespace sdk = minfer::sdk;

class Qwen2 final : public sdk::DecoderArchitecture {
 public:
  explicit Qwen2(const sdk::Host&) : DecoderArchitecture(traits()) {}

 private:
  static sdk::DecoderTraits traits() {
    sdk::DecoderTraits traits;
    traits.arch = "qwen2";
    traits.rope_kind = MI_ROPE_SPLIT_HALVES;
    traits.qkv_bias = true;
    return traits;
  }
};

}  // namespace

MINFER_EXPORT_ARCH(Qwen2, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
