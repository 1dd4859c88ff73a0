// Splits, fusion and placement: each rule and each reason against it.
#include <catch2/catch.hpp>

#include <algorithm>

#include "engine/schedule/assign.hpp"
#include "engine/schedule/fuse.hpp"
#include "engine/schedule/split.hpp"
#include "sketch.hpp"
#include "support/toy_architecture.hpp"

namespace minfer::test {
namespace {

TEST_CASE("engine/split: one device is one split and every change of device cuts") {
  Sketch s;
  const ValueId x = s.x(16);              // 0
  const ValueId a = s.g.silu(x);          // 1
  const ValueId v = s.g.view(a, {64});    // 2: in no split
  const ValueId b = s.g.silu(v);          // 3
  s.g.silu(x);                            // 4: dead
  const ValueId c = s.g.add(b, s.g.view(x, {64}));  // 5 view, 6 add
  s.g.output(c);
  const Graph graph = s.finish();
  const auto one = split_graph(graph, std::vector<uint32_t>(7, 0), false);
  REQUIRE(one.size() == 1);
  CHECK(one[0].nodes == std::vector<NodeId>{0, 1, 3, 6});
  CHECK(one[0].copies.empty());

  const auto three = split_graph(graph, {0, 1, 0, 1, 0, 0, 0}, false);
  REQUIRE(three.size() == 3);
  CHECK(three[0].nodes == std::vector<NodeId>{0});
  CHECK(three[1].device == 1);
  CHECK(three[1].nodes == std::vector<NodeId>{1, 3});
  CHECK(three[1].copies == std::vector<StagedCopy>{{x, 0}});
  CHECK(three[2].nodes == std::vector<NodeId>{6});
  CHECK(three[2].copies == std::vector<StagedCopy>{{b, 1}});  // x is still there, under its view

  const auto observed = split_graph(graph, std::vector<uint32_t>(7, 0), true);
  REQUIRE(observed.size() == 4);
  for (const Split& split : observed) CHECK(split.nodes.size() == 1);
}

TEST_CASE("engine/split: a value goes to a device once and a view is copied by its root") {
  Sketch s;
  const ValueId x = s.x(16);                  // 0 on device 0
  const ValueId v = s.g.view(x, {8, 2}, 16);  // 1
  const ValueId a = s.g.silu(v);              // 2 on 1
  const ValueId b = s.g.silu(a);              // 3 on 0
  const ValueId c = s.g.add(b, v);            // 4 on 1: x is there already, b is not
  s.g.output(c);
  const auto splits = split_graph(s.finish(), {0, 0, 1, 0, 1}, false);
  REQUIRE(splits.size() == 4);
  CHECK(splits[1].copies == std::vector<StagedCopy>{{x, 0}});
  CHECK(splits[2].copies == std::vector<StagedCopy>{{a, 1}});
  CHECK(splits[3].copies == std::vector<StagedCopy>{{b, 0}});
}

// One layer's Q, K, V as architectures emit them, with one thing changed.
struct QkvChange {
  bool k_read_elsewhere = false, v_from_other_x = false, q_from_other_x = false, other_rope_positions = false, other_store_positions = false,
       other_rope_kind = false, other_store_heads = false, q_through_view = false, q_read_before_store = false, k_is_output = false,
       attention_before_q = false, store_before_q = false;
};

Graph qkv_graph(const QkvChange& change, bool biased = true) {
  Sketch s(2, 2);
  GraphWriter& g = s.g;
  const ValueId positions = g.input(InputKind::kPositions), row_seq = g.input(InputKind::kRowSeq), table = g.input(InputKind::kBlockTable);
  const ValueId other_positions = g.input(InputKind::kOutPositions);
  const ValueId x = s.x(16), other_x = s.x(16);
  ValueId q = kNone;
  const auto make_q = [&] {
    q = g.matmul(change.q_from_other_x ? other_x : x, s.matrix(16, 32), biased ? s.vector(32) : kNone);
    if (change.q_through_view) q = g.view(q, {32, 2});
    q = g.rope(q, change.other_rope_positions ? other_positions : positions, 4, 8,
               change.other_rope_kind ? RopeKind::kInterleaved : RopeKind::kSplitHalves);
  };
  const auto attend = [&](ValueId query) { return g.attention(query, positions, row_seq, table, 4, change.other_store_heads ? 4 : 2, 8, 1); };
  if (!change.store_before_q && !change.attention_before_q) make_q();
  const ValueId early = change.q_read_before_store ? g.silu(q) : kNone;
  const ValueId k = g.matmul(x, s.matrix(16, 16), biased ? s.vector(16) : kNone);
  const ValueId v = g.matmul(change.v_from_other_x ? other_x : x, s.matrix(16, 16));
  const ValueId k_rope = g.rope(k, positions, 2, 8);
  g.kv_store(k_rope, v, change.other_store_positions ? other_positions : positions, row_seq, table, change.other_store_heads ? 4 : 2,
             change.other_store_heads ? 4 : 8);
  const ValueId other_attention = change.attention_before_q ? attend(s.x(32)) : kNone;
  if (change.store_before_q || change.attention_before_q) make_q();
  g.output(attend(q));
  if (change.k_read_elsewhere) g.output(g.silu(k));
  if (change.k_is_output) g.output(k_rope);
  if (early != kNone) g.output(early);
  if (other_attention != kNone) g.output(other_attention);
  return s.finish();
}

FusedGraph fuse_all(const Graph& graph, std::vector<uint32_t> devices = {}, bool qkv = true, bool ffn = true,
                    const std::function<bool(const Node&, uint32_t)>& allow = [](const Node&, uint32_t) { return true; }) {
  if (devices.empty()) devices.assign(graph.nodes.size(), 0);
  CParams cparams;
  cparams.fuse_qkv = qkv;
  cparams.fuse_ffn = ffn;
  FusedGraph fused = fuse(graph, devices, cparams, allow);
  const Status valid = validate(fused.graph);
  if (!valid.ok()) FAIL(valid.error().text);
  REQUIRE(fused.node_device.size() == fused.graph.nodes.size());
  return fused;
}

uint32_t count(const FusedGraph& fused, Op op) {
  uint32_t n = 0;
  for (const Node& node : fused.graph.nodes) n += node.op == op;
  return n;
}

TEST_CASE("engine/fuse: MatMul x3 and Rope x2 and KvStore become one FusedQkv with everything they read") {
  for (const bool biased : {true, false})
    for (const bool store_first : {true, false}) {
      CAPTURE(biased, store_first);
      QkvChange change;
      change.store_before_q = store_first;
      const Graph graph = qkv_graph(change, biased);
      const FusedGraph fused = fuse_all(graph);
      CHECK(fused.n_fused == 1);
      REQUIRE(fused.graph.nodes.size() == graph.nodes.size() - 5);
      REQUIRE(count(fused, Op::kFusedQkv) == 1);
      const auto at = std::find_if(fused.graph.nodes.begin(), fused.graph.nodes.end(), [](const Node& n) { return n.op == Op::kFusedQkv; });
      const auto weight = [&](size_t slot) { return at->inputs[slot] == kNone ? kNone : fused.graph.values[at->inputs[slot]].index; };
      REQUIRE(at->inputs.size() == 11);
      CHECK(weight(1) == 8);  // [16, 32]
      CHECK(weight(2) == 7);
      CHECK(weight(3) == 7);
      CHECK(weight(4) == (biased ? 14 : kNone));
      CHECK(weight(5) == (biased ? 13 : kNone));
      CHECK(weight(6) == kNone);
      CHECK(fused.graph.values[at->inputs[7]].index == static_cast<uint32_t>(InputKind::kPositions));
      CHECK(fused.graph.values[at->inputs[8]].index == static_cast<uint32_t>(InputKind::kRowSeq));
      CHECK(fused.graph.values[at->inputs[9]].index == static_cast<uint32_t>(InputKind::kBlockTable));
      CHECK(at->attrs.n_head == 4);
      CHECK(at->attrs.n_head_kv == 2);
      CHECK(at->attrs.head_dim == 8);
      CHECK(at->attrs.rope_freq_base == 10000);
      CHECK(std::next(at)->op == Op::kAttention);
    }
}

TEST_CASE("engine/fuse: QKV stays apart for each reason against it") {
  const std::pair<const char*, bool QkvChange::*> reasons[] = {
      {"k read elsewhere", &QkvChange::k_read_elsewhere},
      {"v from other rows", &QkvChange::v_from_other_x},
      {"q from other rows", &QkvChange::q_from_other_x},
      {"q at other positions", &QkvChange::other_rope_positions},
      {"stored at other positions", &QkvChange::other_store_positions},
      {"other rotation", &QkvChange::other_rope_kind},
      {"other head shape in the store", &QkvChange::other_store_heads},
      {"norm of q through a view", &QkvChange::q_through_view},
      {"q read before the store", &QkvChange::q_read_before_store},
      {"k is an output", &QkvChange::k_is_output},
      {"KV read before q is there", &QkvChange::attention_before_q},
  };
  for (const auto& [name, member] : reasons) {
    CAPTURE(name);
    QkvChange change;
    change.*member = true;
    const Graph graph = qkv_graph(change);
    const FusedGraph fused = fuse_all(graph);
    CHECK(fused.n_fused == 0);
    CHECK(fused.graph.nodes == graph.nodes);
  }
  const Graph graph = qkv_graph({});
  CHECK(fuse_all(graph, {}, false).n_fused == 0);
  CHECK(fuse_all(graph, {}, true, true, [](const Node& n, uint32_t) { return n.op != Op::kFusedQkv; }).n_fused == 0);
  CHECK(fuse_all(graph, {}, true, true, [](const Node&, uint32_t device) { return device != 0; }).n_fused == 0);
  // Any one of the six on another device: node 2 is Q's MatMul, 3 its rotation, 4 K, 5 V, 6 K's rotation, 7 the store.
  for (NodeId n = 2; n <= 7; ++n) {
    std::vector<uint32_t> devices(graph.nodes.size(), 0);
    devices[n] = 1;
    CHECK(fuse_all(graph, devices).n_fused == 0);
  }
}

struct FfnChange {
  bool up_first = false, other_x = false, bias = false, gate_read = false, silu_read = false, silu_output = false;
};

Graph ffn_graph(const FfnChange& change) {
  Sketch s;
  const ValueId x = s.x(16);                                                           // 0
  const ValueId other = s.g.silu(x);                                                   // 1
  const ValueId gate = s.g.matmul(x, s.matrix(16, 32), change.bias ? s.vector(32) : kNone);  // 2
  const ValueId silu = s.g.silu(gate);                                                 // 3
  const ValueId up = s.g.matmul(change.other_x ? other : x, s.matrix(16, 32));         // 4
  const ValueId mul = change.up_first ? s.g.mul(up, silu) : s.g.mul(silu, up);         // 5
  s.g.output(s.matmul(mul, 32, 16));
  s.g.output(other);
  if (change.gate_read) s.g.output(s.g.add(gate, gate));
  if (change.silu_read) s.g.output(s.g.add(silu, silu));
  if (change.silu_output) s.g.output(silu);
  return s.finish();
}

TEST_CASE("engine/fuse: MatMul x2 and Silu and Mul become FusedFfn or what is left of it") {
  const auto ops = [](const FusedGraph& f) { return std::pair(count(f, Op::kFusedFfn), count(f, Op::kSiluMul)); };
  const auto change = [](bool FfnChange::*member) {
    FfnChange c;
    c.*member = true;
    return ffn_graph(c);
  };
  using P = std::pair<uint32_t, uint32_t>;
  const Graph graph = ffn_graph({});
  const FusedGraph fused = fuse_all(graph);
  CHECK(ops(fused) == P{1, 0});
  CHECK(fused.n_fused == 1);
  CHECK(fused.graph.nodes.size() == graph.nodes.size() - 3);
  CHECK(ops(fuse_all(change(&FfnChange::up_first))) == P{1, 0});
  CHECK(ops(fuse_all(graph, {}, true, false)) == P{0, 1});
  CHECK(ops(fuse_all(change(&FfnChange::other_x))) == P{0, 1});
  CHECK(ops(fuse_all(change(&FfnChange::bias))) == P{0, 1});
  CHECK(ops(fuse_all(change(&FfnChange::gate_read))) == P{0, 1});
  CHECK(ops(fuse_all(change(&FfnChange::silu_read))) == P{0, 0});
  CHECK(ops(fuse_all(change(&FfnChange::silu_output))) == P{0, 0});
  CHECK(ops(fuse_all(graph, {}, true, true, [](const Node& n, uint32_t) { return n.op != Op::kFusedFfn; })) == P{0, 1});
  CHECK(ops(fuse_all(graph, {}, true, true, [](const Node&, uint32_t) { return false; })) == P{0, 0});
  const auto on_second = [&](NodeId n) {
    std::vector<uint32_t> devices(graph.nodes.size(), 0);
    devices[n] = 1;
    return ops(fuse_all(graph, devices));
  };
  CHECK(on_second(2) == P{0, 1});
  CHECK(on_second(3) == P{0, 0});
  CHECK(on_second(4) == P{0, 1});
  CHECK(on_second(5) == P{0, 0});

  // gate and up keep their roles when the product names up first.
  const FusedGraph swapped = fuse_all(change(&FfnChange::up_first), {}, true, false);
  const auto at = std::find_if(swapped.graph.nodes.begin(), swapped.graph.nodes.end(), [](const Node& n) { return n.op == Op::kSiluMul; });
  CHECK(swapped.graph.values[at->inputs[0]].producer == 2);  // the gate's MatMul
}

// ---- placement ----

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
  CHECK_THAT(refused.error().text, Catch::Contains("layer 0: no listed backend supports rope with weight type 0"));

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
  twice.add("cpu", true);
  auto both = twice.place();
  REQUIRE_FALSE(both.ok());
  CHECK_THAT(both.error().text, Catch::Contains("tensor 'token_embd' is used on cpu and on gpu; it can be placed on one device only"));
  Placing one(tied);
  one.add("gpu", false);
  one.add("cpu", true);
  CHECK(one.place({1, {}}).ok());  // both uses are outside the blocks
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
