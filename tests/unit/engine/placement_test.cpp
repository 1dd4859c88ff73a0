// Placement: who gets which layer, what falls back where, what is refused. And what a model's graphs may ask of its KV.
#include <catch2/catch.hpp>

#include "engine/schedule/assign.hpp"
#include "sketch.hpp"
#include "support/toy_architecture.hpp"

namespace minfer::test {
namespace {

struct Placing {
  explicit Placing(ToyOptions options = {}) : architecture(options) {}
  ReferenceDevice& add(std::string name, bool host, std::function<bool(const Graph&, const Node&)> supports = {}) {
    ReferenceOptions options;
    options.name = std::move(name);
    options.host = host;
    options.supports = std::move(supports);
    owned.push_back(std::make_unique<ReferenceDevice>(options));
    devices.push_back(owned.back().get());
    return *owned.back();
  }
  Result<Placement> place(const LayerCounts& counts = {}, const std::vector<bool>& strict = {}) {
    return place_model(architecture, devices, counts, strict, toy_cparams());
  }
  uint32_t weight(const Placement& p, std::string_view name) const {
    for (uint32_t id = 0; id < architecture.weights().size(); ++id)
      if (architecture.weights()[id].name == name) return p.weight_device[id];
    return kNone;
  }
  ToyArchitecture architecture;
  std::vector<std::unique_ptr<ReferenceDevice>> owned;
  std::vector<Device*> devices;
};

using Devices = std::vector<uint32_t>;

TEST_CASE("engine/placement: gpu_layers hands out blocks in the order of the list") {
  ToyOptions options;
  options.n_layers = 3;
  const auto placed = [&](const LayerCounts& counts) {
    Placing p(options);
    p.add("gpu", false);
    p.add("cpu", true);
    auto placement = p.place(counts);
    REQUIRE(placement.ok());
    CHECK(placement->fallbacks.empty());
    CHECK(placement->kv_device == placement->layer_device);
    CHECK(placement->embedding_device == placement->output_device);
    CHECK(p.weight(*placement, "token_embd") == placement->embedding_device);
    CHECK(p.weight(*placement, "output") == placement->output_device);
    for (uint32_t l = 0; l < 3; ++l) {
      const std::string block = "blk." + std::to_string(l) + ".";
      CHECK(p.weight(*placement, block + "wq") == placement->layer_device[l]);
      CHECK(p.weight(*placement, block + "bq") == placement->layer_device[l]);
    }
    return std::pair(placement->layer_device, placement->output_device);
  };
  CHECK(placed({}) == std::pair(Devices{0, 0, 0}, 0u));
  CHECK(placed({3, {}}) == std::pair(Devices{0, 0, 0}, 0u));
  CHECK(placed({99, {}}) == std::pair(Devices{0, 0, 0}, 0u));
  CHECK(placed({2, {}}) == std::pair(Devices{0, 0, 1}, 1u));
  CHECK(placed({1}) == std::pair(Devices{0, 1, 1}, 1u));
  CHECK(placed({0, {}}) == std::pair(Devices{1, 1, 1}, 1u));

  Placing p(options);
  CHECK_THAT(p.place().error().text, Catch::Contains("no backend"));
  p.add("gpu", false);
  auto short_of = p.place({2});
  REQUIRE_FALSE(short_of.ok());
  CHECK_THAT(short_of.error().text, Catch::Contains("take 2 of 3 layers; list one more backend or raise gpu_layers"));
}

TEST_CASE("engine/placement: what a device does not support goes to the next listed one and then to the host") {
  Placing p;
  p.add("first", false, [](const Graph&, const Node& n) { return !(n.op == Op::kSilu && n.layer == 1); });
  p.add("second", false, [](const Graph&, const Node& n) { return n.op != Op::kMul; });
  p.add("host", true);
  auto placement = p.place();
  REQUIRE(placement.ok());
  REQUIRE(placement->fallbacks.size() == 1);
  CHECK(describe(placement->fallbacks[0], p.devices) == "layer 1: silu (weight type 0) is not supported on first, runs on second");
  std::vector<Fallback> many(6, placement->fallbacks[0]);
  for (const auto& [i, layer] : {std::pair<size_t, uint32_t>{0, 0}, {1, 1}, {2, 1}, {3, 2}, {4, 5}, {5, kOutputLayer}})
    many[i].layer = layer;
  const auto lines = describe(many, p.devices, [](DType) { return std::string_view("F32"); });
  CHECK(lines == std::vector<std::string>{"output: silu (weight type F32) is not supported on first, runs on second",
                                          "layers 0-2, 5: silu (weight type F32) is not supported on first, runs on second"});
  CHECK(placement->weightless_device.at({1, Op::kSilu}) == 1);
  Graph graph = *build_graph(p.architecture, make_graph_params(2, 2, toy_cparams()));
  const auto assigned = assign(graph, *placement);
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    CHECK(assigned[n] == (graph.nodes[n].op == Op::kSilu && graph.nodes[n].layer == 1 ? 1u : 0u));

  // A device later in the list falls back to those before it only when they are hosts.
  Placing q;
  q.add("gpu", false);
  q.add("host", true);
  q.add("odd", false, [](const Graph&, const Node& n) { return n.op != Op::kMul; });
  auto other = q.place({0, 0, {}});
  REQUIRE(other.ok());
  CHECK(other->weightless_device.at({0, Op::kMul}) == 1);
  CHECK(other->fallbacks.size() == 2);
}

TEST_CASE("engine/placement: a weight moves with its operation and the KV of a layer stays together") {
  Placing p;
  p.add("gpu", false, [](const Graph&, const Node& n) { return !(n.op == Op::kAttention && n.layer == 0) && n.op != Op::kRmsNorm; });
  p.add("cpu", true);
  auto placement = p.place();
  REQUIRE(placement.ok());
  CHECK(placement->kv_device == Devices{1, 0});
  CHECK(placement->layer_device == Devices{0, 0});
  CHECK(p.weight(*placement, "blk.1.attn_norm") == 1);
  CHECK(p.weight(*placement, "blk.1.wq") == 0);
  const Graph graph = *build_graph(p.architecture, make_graph_params(2, 1, toy_cparams()));
  const auto assigned = assign(graph, *placement);
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool kv = node.op == Op::kKvStore || node.op == Op::kAttention;
    CHECK(assigned[n] == ((kv && node.layer == 0) || node.op == Op::kRmsNorm ? 1u : 0u));
  }
}

TEST_CASE("engine/placement: a node must be supported at every batch size that was asked about") {
  Placing p;
  p.add("gpu", false, [](const Graph& g, const Node& n) { return n.op != Op::kSilu || g.values[n.outputs[0]].shape.rows() == 1; });
  p.add("cpu", true);
  auto placement = p.place();
  REQUIRE(placement.ok());
  CHECK(placement->weightless_device.at({0, Op::kSilu}) == 1);
}

TEST_CASE("engine/placement: refuses what no device runs what strict forbids and a tied weight on two devices") {
  Placing none;
  none.add("a", true, [](const Graph&, const Node& n) { return n.op != Op::kRope; });
  none.add("b", true, [](const Graph&, const Node& n) { return n.op != Op::kRope; });
  auto refused = none.place();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK_THAT(refused.error().text, Catch::Contains("layer 0: no listed backend supports rope with values of type f32"));

  Placing matmul;
  matmul.add("a", true, [](const Graph&, const Node& n) { return n.op != Op::kMatMul; });
  const std::string of_weight = matmul.place().error().text;
  CHECK_THAT(of_weight, Catch::Contains("layer 0: no listed backend supports matmul with weight type 0 (tensor 'blk.0."));
  Placing kv;
  kv.add("a", true, [](const Graph&, const Node& n) { return n.op != Op::kKvStore; });
  CHECK_THAT(kv.place().error().text,
             Catch::Contains(text("layer 0: no listed backend keeps a KV of 2 heads of {} in format ", kv.architecture.info().head_dim)));

  Placing strict;
  strict.add("gpu", false, [](const Graph&, const Node& n) { return n.op != Op::kSilu; });
  strict.add("cpu", true);
  auto forbidden = strict.place({}, {true, false});
  REQUIRE_FALSE(forbidden.ok());
  CHECK_THAT(forbidden.error().text, Catch::Contains("silu (weight type 0) is not supported on gpu, runs on cpu (strict is set)"));
  CHECK(strict.place({}, {false, true}).ok());

  ToyOptions tied;
  tied.tied = true;
  Placing twice(tied);
  twice.add("gpu", false, [](const Graph&, const Node& n) { return n.op != Op::kGetRows || n.layer != kEmbeddingLayer; });
  twice.add("cpu", true, [](const Graph&, const Node& n) { return n.op != Op::kMatMul; });
  auto both = twice.place();
  REQUIRE_FALSE(both.ok());
  CHECK_THAT(both.error().text, Catch::Contains("tensor 'token_embd' is used on cpu and on gpu; it can be placed on one device only"));
  Placing one(tied);
  one.add("gpu", false);
  one.add("cpu", true);
  CHECK(one.place({1, {}}).ok());  // both uses are outside the blocks
}

TEST_CASE("engine/placement: both uses of a tied matrix go to a device that supports both") {
  ToyOptions tied;
  tied.tied = true;
  const auto no_embedding = [](const Graph&, const Node& n) { return n.op != Op::kGetRows || n.layer != kEmbeddingLayer; };
  const auto no_output = [](const Graph&, const Node& n) { return n.op != Op::kMatMul || n.layer != kOutputLayer; };
  for (const auto& lacks_one : {std::function<bool(const Graph&, const Node&)>(no_embedding), {no_output}}) {
    Placing p(tied);
    p.add("gpu", false, lacks_one);
    p.add("cpu", true);
    const auto placement = p.place();
    REQUIRE(placement.ok());
    CHECK(p.weight(*placement, "token_embd") == 1);
    CHECK(p.weight(*placement, "output_norm") == 0);
    const Graph graph = *build_graph(p.architecture, make_graph_params(2, 1, toy_cparams()));
    const auto assigned = assign(graph, *placement);
    for (NodeId n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      const bool tied_use = node.layer == kEmbeddingLayer || (node.layer == kOutputLayer && node.op == Op::kMatMul);
      CHECK(assigned[n] == (tied_use ? 1u : 0u));
    }
    REQUIRE(placement->fallbacks.size() == 2);
    const Fallback& follows = placement->fallbacks[placement->fallbacks[0].tied ? 0 : 1];
    CHECK(follows.tied);
    CHECK_THAT(describe(follows, p.devices), Catch::Contains("runs on cpu, where the other use of its tensor is supported"));
    CHECK_FALSE(p.place({}, {true, false}).ok());
  }
}

// An architecture that puts KV operations where the model has no such KV.
class WrongKv final : public ModelArchitecture {
 public:
  const ModelInfo& info() const override { return info_; }
  const std::vector<WeightInfo>& weights() const override { return sketch_weights(); }
  Status build(const GraphParams&, GraphBuilder& builder) override {
    GraphWriter g(builder);
    g.layer = layer;
    const ValueId x = g.get_rows(g.weight(1), g.input(InputKind::kTokenIds));
    g.kv_store(x, x, g.input(InputKind::kPositions), g.input(InputKind::kRowSeq), g.input(InputKind::kBlockTable), heads, 16 / heads);
    g.output(x);
    return {};
  }
  uint32_t layer = 0, heads = 2;
  ModelInfo info_{2, 16, 50, 256, 2, 8};
};

TEST_CASE("engine/architecture: KV operations outside the model's layers and heads are refused") {
  WrongKv model;
  const GraphParams params = make_graph_params(2, 1, toy_cparams());
  CHECK(build_graph(model, params).ok());
  model.layer = 2;
  auto graph = build_graph(model, params);
  REQUIRE_FALSE(graph.ok());
  CHECK_THAT(graph.error().text, Catch::Contains("node 1: kv_store of layer 2, the model has 2 layers"));
  model.layer = 0;
  model.heads = 4;
  graph = build_graph(model, params);
  REQUIRE_FALSE(graph.ok());
  CHECK_THAT(graph.error().text, Catch::Contains("with 4 KV heads of 4, the model has 2 of 8"));
}

}  // namespace
}  // namespace minfer::test
