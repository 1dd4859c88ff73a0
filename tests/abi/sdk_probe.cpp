// A backend written with the SDK, for hosts and plugins of different compilers: exceptions, options, memory and texts cross.
#include <stdexcept>

#include "minfer/plugin/host_device.hpp"

namespace sdk = minfer::sdk;

class ProbeDevice final : public sdk::HostDevice {
 public:
  explicit ProbeDevice(const sdk::Host& host) : HostDevice("sdk_probe", sdk::join("size ", host.option_uint("size", 1, 9).value_or(1))) {}
  void supports(const sdk::GraphView&, uint8_t*) override { throw std::runtime_error("thrown by the device"); }
  std::unique_ptr<sdk::Buffer> alloc(uint64_t size_bytes) override {
    if (size_bytes > 1000) throw std::bad_alloc();
    return HostDevice::alloc(size_bytes);
  }
  sdk::KvBytes kv_region_bytes(const mi_kv_layout& layout) override {
    return {uint64_t{layout.head_dim} * layout.n_blocks, layout.n_head_kv};
  }
  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView&, sdk::Weights*) override { sdk::fail(MI_UNSUPPORTED, "no plans"); }
  void sync() override { throw 7; }
};

MINFER_EXPORT_BACKEND(sdk::OneDevice<ProbeDevice>, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
