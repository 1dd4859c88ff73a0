// The plugin's entry: which files are llama.
#include "llama.hpp"

namespace llama {
namespace {

class LlamaArchitecture final : public sdk::Architecture {
 public:
  explicit LlamaArchitecture(const sdk::Host&) {}

  uint32_t match(const sdk::Metadata& metadata) const override {
    return metadata.find_string("general.architecture") == "llama" ? 100 : 0;
  }
  std::unique_ptr<sdk::Model> create(const sdk::Metadata& metadata) const override { return std::make_unique<Llama>(metadata); }
};

}  // namespace
}  // namespace llama

MINFER_EXPORT_ARCH(llama::LlamaArchitecture, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
