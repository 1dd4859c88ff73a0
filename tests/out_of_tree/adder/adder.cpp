// A backend of another project: runs additions and multiplications of activations, leaves the rest to the next backend, and says at
// its end how many it ran. adder_c is the same in C without the SDK.
#include "minfer/plugin/host_device.hpp"

namespace {

namespace sdk = minfer::sdk;

class AdderPlan final : public sdk::Plan {
 public:
  struct Call {
    uint32_t op;
    const float* a;
    const float* b;
    float* out;
    uint64_t n;
  };

  AdderPlan(std::vector<Call> calls, uint64_t& n_run) : calls_(std::move(calls)), n_run_(n_run) {}

  void run(const sdk::Step&) override {
    for (const Call& call : calls_) {
      for (uint64_t i = 0; i < call.n; ++i) call.out[i] = call.op == MI_OP_ADD ? call.a[i] + call.b[i] : call.a[i] * call.b[i];
      ++n_run_;
    }
  }

 private:
  std::vector<Call> calls_;
  uint64_t& n_run_;
};

class AdderDevice final : public sdk::HostDevice {
 public:
  explicit AdderDevice(const sdk::Host& host)
      : HostDevice("adder", host.option_bool("multiply", true) ? "adds and multiplies" : "adds"),
        host_(host),
        multiply_(host.option_bool("multiply", true)) {}
  ~AdderDevice() override { host_.info("adder ran ", n_run_, " operations"); }

  void supports(const sdk::GraphView& graph, uint8_t* mask) override {
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) {
      const uint32_t op = graph.node(i).op;
      mask[i] = op == MI_OP_ADD || (op == MI_OP_MUL && multiply_);
    }
  }

  std::unique_ptr<sdk::Plan> create_plan(const sdk::GraphView& graph, sdk::Weights*) override {
    std::vector<AdderPlan::Call> calls;
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) {
      const mi_node& node = graph.node(i);
      const mi_value& out = graph.output(node);
      calls.push_back({node.op, f32(*graph.input(node, 0)), f32(*graph.input(node, 1)), f32(out), n_elements(out)});
    }
    return std::make_unique<AdderPlan>(std::move(calls), n_run_);
  }

 private:
  sdk::Host host_;
  bool multiply_;
  uint64_t n_run_ = 0;
};

}  // namespace

MINFER_EXPORT_BACKEND(sdk::OneDevice<AdderDevice>, MINFER_PLUGIN_NAME, MINFER_PLUGIN_VERSION)
