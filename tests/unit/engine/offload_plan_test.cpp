// How many layers a device takes: what fits its memory to the byte, and what is said where it does not.
#include "engine/schedule/offload_plan.hpp"

#include <catch2/catch.hpp>

#include "engine/reuse/compiled_graph.hpp"
#include "support/toy_architecture.hpp"

namespace minfer::test {
namespace {

using Mode = LayerRequest::Mode;
using Counts = std::vector<std::optional<uint32_t>>;

constexpr uint32_t kLayers = 4;
constexpr uint32_t kRows = 64;

ToyOptions toy_options() {
  ToyOptions options;
  options.n_layers = kLayers;
  return options;
}

// What the toy needs, counted from its shapes and from a graph as a session would run it.
struct Sizes {
  uint64_t layer = 0;    // weights and KV
  uint64_t outside = 0;  // embedding, last norm, output
  uint64_t scratch = 0;
  std::vector<uint64_t> weights;

  Sizes() {
    const ToyModel model(toy_options());
    for (const WeightInfo& weight : model.architecture.weights()) {
      weights.push_back(weight.shape.elements() * sizeof(float));
      if (weight.layer == 0) layer += weights.back();
      if (weight.layer >= kLayers) outside += weights.back();
    }
    layer += 2 * 256 * 2 * 8 * sizeof(float);  // K and V, positions, KV heads, size of a head
    CParams cparams = toy_cparams();
    cparams.fuse_qkv = cparams.fuse_ffn = false;
    scratch = (*compile_graph(*model.model, make_graph_params(kRows, 1, cparams)))->memory.arena_bytes[0];
  }
  uint64_t of(uint32_t layers) const { return layers ? scratch + layers * layer + (layers == kLayers ? outside : 0) : 0; }
};

struct Offload {
  // memory: free bytes of each device, 0: it does not tell; a device is the host where its name is "host".
  explicit Offload(const std::vector<std::pair<std::string, uint64_t>>& memory) {
    for (const auto& [name, bytes] : memory) {
      ReferenceOptions options;
      options.name = name;
      options.host = name == "host";
      options.memory_free_bytes = bytes;
      owned.push_back(std::make_unique<ReferenceDevice>(options));
      devices.push_back(owned.back().get());
    }
  }
  Result<OffloadPlan> plan(const std::vector<LayerRequest>& layers = {}) {
    return plan_offload(architecture, {devices, layers, sizes.weights, toy_cparams(), kRows});
  }
  Sizes sizes;
  ToyArchitecture architecture{toy_options()};
  std::vector<std::unique_ptr<ReferenceDevice>> owned;
  std::vector<Device*> devices;
};

}  // namespace

TEST_CASE("engine/offload_plan: auto takes as many layers as weights and KV and scratch leave room for") {
  const Sizes sizes;
  REQUIRE(sizes.scratch > 0);
  for (uint32_t layers = 1; layers <= kLayers; ++layers) {
    INFO(layers);
    Offload enough({{"gpu", sizes.of(layers)}, {"host", 0}});
    const auto plan = enough.plan();
    REQUIRE(plan.ok());
    CHECK(plan->counts == Counts{layers, kLayers - layers});
    Offload a_byte_less({{"gpu", sizes.of(layers) - 1}, {"host", 0}});
    const auto less = a_byte_less.plan();
    REQUIRE(less.ok());
    CHECK(less->counts == Counts{layers - 1, kLayers - layers + 1});
  }
  Offload shown({{"gpu", 3 << 20}, {"host", 0}});
  CHECK(shown.plan()->lines ==
        std::vector<std::string>{"offload: 4 of 4 layers on gpu: 0.3 MiB of 3.0 MiB free (weights 0.1 MiB, KV 0.1 MiB, scratch 0.0 MiB)"});
}

TEST_CASE("engine/offload_plan: a longer context leaves room for fewer layers") {
  Offload offload({{"gpu", Sizes().of(kLayers)}, {"host", 0}});
  CParams cparams = toy_cparams();
  cparams.n_ctx = 512;
  const auto plan = plan_offload(offload.architecture, {offload.devices, {}, offload.sizes.weights, cparams, kRows});
  REQUIRE(plan.ok());
  CHECK(*plan->counts[0] < kLayers);
}

TEST_CASE("engine/offload_plan: a number of layers that does not fit is refused with what fits") {
  const Sizes sizes;
  Offload offload({{"gpu", sizes.of(2)}, {"host", 0}});
  CHECK(offload.plan({{Mode::kCount, 2}})->counts == Counts{2, 2});
  for (const LayerRequest request : {LayerRequest{Mode::kCount, 3}, LayerRequest{Mode::kAll}}) {
    const auto plan = offload.plan({request});
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code == ErrorCode::kOutOfMemory);
    CHECK_THAT(plan.error().text,
               Catch::StartsWith(request.count ? "gpu_layers: 3 of 4 layers need 0." : "gpu_layers: 4 of 4 layers need 0.") &&
                   Catch::Contains(" on gpu (weights 0.") && Catch::Contains(", which has 0.2 MiB free") &&
                   Catch::EndsWith("; 2 fit: use gpu_layers: auto or 2, or lower context.n_ctx"));
  }
  Offload tiny({{"gpu", 100}, {"host", 0}});
  CHECK_THAT(tiny.plan({{Mode::kCount, 1}}).error().text, Catch::Contains("not one fits: use gpu_layers: auto or 0"));
  CHECK(tiny.plan()->counts == Counts{0, 4});
}

TEST_CASE("engine/offload_plan: zero layers and more layers than the model has are allowed and the latter is said") {
  Offload offload({{"gpu", 1 << 30}, {"host", 0}});
  CHECK(offload.plan({{Mode::kCount, 0}})->counts == Counts{0, 4});
  const auto many = offload.plan({{Mode::kCount, 99}});
  REQUIRE(many.ok());
  CHECK(many->counts == Counts{4, 0});
  REQUIRE(many->lines.size() == 2);
  CHECK(many->lines[0] == "gpu_layers 99: the model has 4 layers, gpu takes all of them");
}

TEST_CASE("engine/offload_plan: memory that is not told and the host's are not judged") {
  Offload offload({{"gpu", 0}, {"host", 1}});
  const auto all = offload.plan();
  REQUIRE(all.ok());
  CHECK(all->counts == Counts{4, 0});
  CHECK(all->lines == std::vector<std::string>{"offload: 4 of 4 layers on gpu (it does not tell its memory)"});
  CHECK(offload.plan({{Mode::kCount, 1}, {Mode::kAll}})->counts == Counts{1, 3});
}

TEST_CASE("engine/offload_plan: several devices fill up in their order and a rest that none holds is refused") {
  const Sizes sizes;
  // The last one also gets what lies outside the blocks.
  Offload fits({{"one", sizes.of(2)}, {"two", sizes.of(2) + sizes.outside}});
  CHECK(fits.plan()->counts == Counts{2, 2});
  Offload short_of({{"one", sizes.of(2)}, {"two", sizes.of(2) + sizes.outside - 1}});
  const auto refused = short_of.plan();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kOutOfMemory);
  CHECK(refused.error().text ==
        "3 of 4 layers fit the memory of the listed backends; list a backend of the host behind them, or lower context.n_ctx");
  // Too few by the user's own numbers: placement says so.
  CHECK(fits.plan({{Mode::kCount, 1}, {Mode::kCount, 1}})->counts == Counts{1, 1});
}

}  // namespace minfer::test
