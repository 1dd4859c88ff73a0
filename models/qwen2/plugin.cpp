// The plugin's entry: which files are qwen2.
#include "qwen2.hpp"

namespace qwen2 {
namespace {

class Qwen2Architecture final : public sdk::Architecture {
 public:
  explicit Qwen2Architecture(const sdk::Host&) {}

  uint32_t match(const sdk::Metadata& metadata) const override {
    return metadata.find_string("general.architecture") == "qwen2" ? 100 : 0;
  }
  std::unique_ptr<sdk::Model> create(const sdk::Metadata& metadata) const override { return std::make_unique<Qwen2>(metadata); }
};

}  // namespace
}  // namespace qwen2

MINFER_EXPORT_ARCH(qwen2::Qwen2Architecture, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
