// The smallest legal backend: one device with ordinary memory that runs nothing yet. scripts/new-backend copies it for a new one, which
// grows from the top down: say yes to one operation in `supports`, run it in a plan, and the engine gives that operation to your
// device and every other one to the next device of the user's list. minfer-run --backend null,cpu shows what went where.
//
// Only minfer/plugin is included: a backend links nothing of minfer. What each call must do stands in minfer/abi/backend.h, what each
// operation computes in minfer/abi/graph.h. A device that works in ordinary memory is shorter over minfer/plugin/host_device.hpp;
// this file shows all that a device with memory of its own has to say.
#include <cstring>
#include <vector>

#include "minfer/plugin/backend.hpp"

namespace {

namespace sdk = minfer::sdk;

// Memory of the device. A device with memory of its own returns nullptr from host_ptr (the default) and copies in write and read.
class NullBuffer final : public sdk::Buffer {
 public:
  explicit NullBuffer(uint64_t size_bytes) : bytes_(size_bytes) {}

  void* host_ptr() noexcept override { return bytes_.data(); }
  void write(uint64_t offset, const void* src, uint64_t size_bytes) override {
    check(offset, size_bytes);
    std::memcpy(bytes_.data() + offset, src, size_bytes);
  }
  void read(uint64_t offset, void* dst, uint64_t size_bytes) override {
    check(offset, size_bytes);
    std::memcpy(dst, bytes_.data() + offset, size_bytes);
  }

 private:
  // Throwing is how a call fails: the host gets the code and the text.
  void check(uint64_t offset, uint64_t size_bytes) const {
    if (offset > bytes_.size() || size_bytes > bytes_.size() - offset)
      sdk::fail(MI_INVALID_ARGUMENT, "bytes ", offset, " + ", size_bytes, " do not lie in a buffer of ", bytes_.size());
  }

  std::vector<unsigned char> bytes_;
};

// Weights as the device wants them. This one borrows the bytes of the file, which stay valid until it is destroyed. A backend that
// packs them into a layout of its own calls list.source_done(id) after each and returns the packed size from own_bytes.
class NullWeights final : public sdk::Weights {
 public:
  explicit NullWeights(const sdk::WeightList& list) {
    for (uint32_t i = 0; i < list.size(); ++i) data_.push_back(list[i].data);
  }

 private:
  std::vector<const void*> data_;
};

class NullDevice final : public sdk::Device {
 public:
  // What `minfer-plugins` and the banner of a run show. MI_DEVICE_HOST: buffers are memory of this process.
  sdk::DeviceInfo info() override {
    sdk::DeviceInfo info;
    info.name = "null";
    info.description = "runs nothing; a template for new backends";
    info.flags = MI_DEVICE_HOST;
    return info;
  }

  // Which nodes this device can run, operation, types and shapes considered. The mask comes filled with 0, so leaving it alone
  // says no to all. A typical first step:
  //   for (uint32_t i = 0; i < graph.n_nodes(); ++i) mask[i] = graph.node(i).op == MI_OP_ADD;
  // An operation with a weight also looks at its type: graph.input(node, 1)->dtype.
  void supports(const sdk::GraphView&, uint8_t*) override {}

  // Called once per model with the weights of the nodes that `supports` said yes to; not at all where there are none.
  std::unique_ptr<sdk::Weights> import_weights(const sdk::WeightList& list) override { return std::make_unique<NullWeights>(list); }

  // Scratch for activations, and the K and V regions.
  std::unique_ptr<sdk::Buffer> alloc(uint64_t size_bytes) override { return std::make_unique<NullBuffer>(size_bytes); }

  // How rows lie inside a region is the backend's own choice, and so is its size. Both calls may be left out by a backend that says no
  // to MI_OP_KV_STORE and MI_OP_ATTENTION. This one leaves out kv_rotate, which a context shift needs, and kv_export and kv_import, which
  // saved sessions need.
  sdk::KvBytes kv_region_bytes(const mi_kv_layout&) override { sdk::fail(MI_UNSUPPORTED, "the null backend keeps no KV"); }
  // Rows move between blocks when a shared prefix is written to.
  void kv_copy_rows(const mi_kv_layout&, sdk::Buffer&, sdk::Buffer&, const mi_kv_copy*, uint32_t) override {
    sdk::fail(MI_UNSUPPORTED, "the null backend keeps no KV");
  }

  // Prepares a run of nodes once; Plan::run then runs it once per step, in the order of the nodes. All that is fixed (weights, KV
  // regions, where activations lie) is known here; only the bytes of graph inputs come with each step. The host asks only for nodes
  // that `supports` said yes to. Node i reads *graph.input(node, 0), 1, ... and writes graph.output(node), each a mi_value:
  //   MI_VALUE_ACTIVATION: offset_bytes into Buffer::from(value.buffer), which is a NullBuffer that alloc made
  //   MI_VALUE_WEIGHT: value.index is the id of a weight that import_weights got
  //   MI_VALUE_INPUT: step.input(value.index) in Plan::run
  // Copy what you keep: the view itself ends with this call.
  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView& graph, sdk::Weights*) override {
    sdk::fail(MI_UNSUPPORTED, "the null backend runs no operation; it was given ", graph.n_nodes());
  }

  // Waits for everything that plans have started. Nothing to wait for on a device that works at once.
  void sync() override {}
};

// One opened plugin. Read every option here (or in open_device), with host.option("key") and its kin: the host refuses options that
// were never asked for.
class NullBackend final : public sdk::Backend {
 public:
  explicit NullBackend(const sdk::Host&) {}

  uint32_t device_count() override { return 1; }
  std::unique_ptr<sdk::Device> open_device(uint32_t) override { return std::make_unique<NullDevice>(); }
};

}  // namespace

MINFER_EXPORT_BACKEND(NullBackend, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
