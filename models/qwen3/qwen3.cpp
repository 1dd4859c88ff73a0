// Qwen3 (the dense models): no biases; q and k are normed per head before the rotation; the size of a head is a key of the file and
// independent of the width; a head's pairs are its two halves. Technical report: arXiv 2505.09388.
#include "minfer/plugin/decoder.hpp"

namespace {

namespace sdk = minfer::sdk;

class Qwen3 final : public sdk::DecoderArchitecture {
 public:
  explicit Qwen3(const sdk::Host&) : DecoderArchitecture(traits()) {}

 private:
  static sdk::DecoderTraits traits() {
    sdk::DecoderTraits traits;
    traits.arch = "qwen3";
    traits.rope_kind = MI_ROPE_SPLIT_HALVES;
    traits.qk_norm = true;
    traits.head_size_in_file = true;
    return traits;
  }
};

}  // namespace

MINFER_EXPORT_ARCH(Qwen3, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
