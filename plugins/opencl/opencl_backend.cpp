// The plugin's entry: its options and its one device. Opening fails, and says why, where no device can be used.
#include "opencl_device.hpp"

namespace minfer::opencl {
namespace {

class OpenclBackend final : public sdk::Backend {
 public:
  explicit OpenclBackend(const sdk::Host& host) {
    DeviceChoice choice;
    choice.platform = host.option("platform").value_or("");
    choice.device = host.option("device").value_or("");
    choice.allow_cpu = host.option_bool("allow_cpu", false);
    device_ = choose_device(choice);
  }
  uint32_t device_count() override { return 1; }
  std::unique_ptr<sdk::Device> open_device(uint32_t) override { return std::make_unique<OpenclDevice>(device_); }

 private:
  FoundDevice device_;
};

}  // namespace
}  // namespace minfer::opencl

MINFER_EXPORT_BACKEND(minfer::opencl::OpenclBackend, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
