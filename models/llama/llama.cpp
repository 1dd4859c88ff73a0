// Llama (also Llama 2 and 3, SmolLM and others of that shape): no biases; GGUF files hold q and k permuted so that a head's pairs
// are neighbours; Llama 3.1 and later bring frequency divisors. Papers: arXiv 2302.13971, 2307.09288, 2407.21783.
#include "minfer/plugin/decoder.hpp"

namespace {

namespace sdk = minfer::sdk;

class Llama final : public sdk::DecoderArchitecture {
 public:
  explicit Llama(const sdk::Host&) : DecoderArchitecture(traits()) {}

 private:
  static sdk::DecoderTraits traits() {
    sdk::DecoderTraits traits;
    traits.arch = "llama";
    traits.rope_kind = MI_ROPE_INTERLEAVED;
    return traits;
  }
};

}  // namespace

MINFER_EXPORT_ARCH(Llama, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
