// Splits and fusion: each rule and each reason against it.
#include <catch2/catch.hpp>

#include <algorithm>

#include "engine/schedule/fuse.hpp"
#include "engine/schedule/split.hpp"
#include "sketch.hpp"

namespace minfer::test {
namespace {

TEST_CASE("engine/split: one device is one split and every change of device cuts") {
  Sketch s;
  const ValueId x = s.x(16);                        // 0
  const ValueId a = s.g.silu(x);                    // 1
  const ValueId v = s.g.view(a, {64});              // 2: in no split
  const ValueId b = s.g.silu(v);                    // 3
  s.g.silu(x);                                      // 4: dead
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
  bool k_read_elsewhere = false, v_from_other_x = false, q_from_other_x = false, other_rope_positions = false,
       other_store_positions = false, other_rope_kind = false, other_store_heads = false, q_through_view = false,
       q_read_before_store = false, k_is_output = false, attention_before_q = false, store_before_q = false;
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
  const auto attend = [&](ValueId query) {
    return g.attention(query, positions, row_seq, table, 4, change.other_store_heads ? 4 : 2, 8, 1);
  };
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

FusedGraph fuse_all(
    const Graph& graph, std::vector<uint32_t> devices = {}, bool qkv = true, bool ffn = true,
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
  const ValueId x = s.x(16);                                                                 // 0
  const ValueId other = s.g.silu(x);                                                         // 1
  const ValueId gate = s.g.matmul(x, s.matrix(16, 32), change.bias ? s.vector(32) : kNone);  // 2
  const ValueId silu = s.g.silu(gate);                                                       // 3
  const ValueId up = s.g.matmul(change.other_x ? other : x, s.matrix(16, 32));               // 4
  const ValueId mul = change.up_first ? s.g.mul(up, silu) : s.g.mul(silu, up);               // 5
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

}  // namespace
}  // namespace minfer::test
