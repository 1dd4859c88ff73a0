// The graph IR: what the builder infers, what it and validate() refuse and in which words.
#include <catch2/catch.hpp>

#include <functional>

#include "sketch.hpp"

namespace minfer::test {
namespace {

struct Positions {
  explicit Positions(Sketch& s)
      : positions(s.g.input(InputKind::kPositions)), row_seq(s.g.input(InputKind::kRowSeq)), table(s.g.input(InputKind::kBlockTable)) {}
  ValueId positions, row_seq, table;
};

TEST_CASE("engine/graph_builder: infers the shape of every operation") {
  Sketch s(4, 2);
  const Positions in(s);
  const ValueId out_rows = s.g.input(InputKind::kOutRows);
  std::vector<std::pair<ValueId, Shape>> expected;
  const ValueId x = s.x(16);
  expected.push_back({x, {16, 4}});
  expected.push_back({s.g.get_rows(x, out_rows), {16, 2}});
  expected.push_back({s.g.rms_norm(x, s.vector(16)), {16, 4}});
  const ValueId q = s.g.matmul(x, s.matrix(16, 32), s.vector(32));
  expected.push_back({q, {32, 4}});
  const ValueId heads = s.g.view(q, {8, 4, 4});
  expected.push_back({heads, {8, 4, 4}});
  expected.push_back({s.g.rms_norm(heads, s.vector(8)), {8, 4, 4}});
  expected.push_back({s.g.rope(q, in.positions, 4, 8), {32, 4}});
  const ValueId k = s.matmul(x, 16, 16);
  s.g.kv_store(k, k, in.positions, in.row_seq, in.table, 2, 8);
  expected.push_back({s.g.attention(q, in.positions, in.row_seq, in.table, 4, 2, 8, 1), {32, 4}});
  expected.push_back({s.g.add(q, q), {32, 4}});
  expected.push_back({s.g.mul(q, q), {32, 4}});
  expected.push_back({s.g.silu(q), {32, 4}});
  expected.push_back({s.g.node(Op::kSiluMul, {q, q}), {32, 4}});
  expected.push_back({s.g.node(Op::kFusedFfn, {x, s.matrix(16, 32), s.matrix(16, 32)}), {32, 4}});
  OpAttrs attrs;
  attrs.n_head = 4;
  attrs.n_head_kv = 2;
  attrs.head_dim = 8;
  expected.push_back({s.g.node(Op::kFusedQkv,
                               {x, s.matrix(16, 32), s.matrix(16, 16), s.matrix(16, 16), s.vector(32), kNone, s.vector(16), in.positions,
                                in.row_seq, in.table, s.vector(4)},
                               attrs),
                      {32, 4}});
  s.g.output(q);
  const Graph graph = s.finish();
  for (const auto& [id, shape] : expected) CHECK(graph.values[id].shape == shape);
  CHECK(graph.nodes[8].outputs.empty());  // the store
  CHECK(graph.inputs.size() == 5);
  CHECK(graph.values[in.table].shape == Shape{64, 1});
  CHECK(graph.values[out_rows].shape == Shape{2});
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    for (ValueId id : graph.nodes[n].outputs) CHECK(graph.values[id].producer == n);
}

TEST_CASE("engine/graph_builder: refuses what does not fit and says layer operation and slot") {
  using Build = std::function<void(Sketch&, const Positions&, ValueId)>;  // x is [16, 4]
  OpAttrs odd;
  odd.n_head = 16;
  odd.head_dim = 1;
  const std::pair<const char*, Build> cases[] = {
      {"layer 3, add: input 1 has shape [8, 4], expects [16, 4]", [](Sketch& s, const Positions&, ValueId x) { s.g.add(x, s.x(8)); }},
      {"layer 3, mul: has 1 inputs, expects 2 to 2", [](Sketch& s, const Positions&, ValueId x) { s.g.node(Op::kMul, {x}); }},
      {"layer 3, silu: input 0 is missing", [](Sketch& s, const Positions&, ValueId) { s.g.silu(kNone); }},
      {"layer 3, silu: input 0 is value 999, which does not exist", [](Sketch& s, const Positions&, ValueId) { s.g.silu(999); }},
      {"layer 3, silu: input 0 must be an activation", [](Sketch& s, const Positions& p, ValueId) { s.g.silu(p.positions); }},
      {"layer 3, add: input 1 must be an activation", [](Sketch& s, const Positions&, ValueId x) { s.g.add(x, s.vector(16)); }},
      {"layer 3, matmul: weight has shape [8, 16], expects [16, n]",
       [](Sketch& s, const Positions&, ValueId x) { s.g.matmul(x, s.matrix(8, 16)); }},
      {"layer 3, matmul: weight has shape [16], expects [16, n]", [](Sketch& s, const Positions&, ValueId x) { s.g.matmul(x, s.vector(16)); }},
      {"layer 3, matmul: input 1 must be a weight", [](Sketch& s, const Positions&, ValueId x) { s.g.matmul(x, x); }},
      {"layer 3, matmul: input 2 has shape [16], expects [8]",
       [](Sketch& s, const Positions&, ValueId x) { s.g.matmul(x, s.matrix(16, 8), s.vector(16)); }},
      {"layer 3, rms_norm: input 1 has shape [8], expects [16]", [](Sketch& s, const Positions&, ValueId x) { s.g.rms_norm(x, s.vector(8)); }},
      {"layer 3, rms_norm: input 1 must be a weight", [](Sketch& s, const Positions&, ValueId x) { s.g.rms_norm(x, x); }},
      {"layer 3, get_rows: source must be a weight or an activation",
       [](Sketch& s, const Positions& p, ValueId) { s.g.get_rows(p.table, p.positions); }},
      {"layer 3, get_rows: input 1 must be a graph input", [](Sketch& s, const Positions&, ValueId x) { s.g.get_rows(x, x); }},
      {"layer 3, rope: input 1 has 2 entries, expects 4",
       [](Sketch& s, const Positions&, ValueId x) { s.g.rope(x, s.g.input(InputKind::kOutRows), 2, 8); }},
      {"layer 3, rope: row of 16 elements is not 3 heads of 8", [](Sketch& s, const Positions& p, ValueId x) { s.g.rope(x, p.positions, 3, 8); }},
      {"layer 3, rope: head count 0 and head size 8 must be positive",
       [](Sketch& s, const Positions& p, ValueId x) { s.g.rope(x, p.positions, 0, 8); }},
      {"layer 3, rope: head size 1 is odd", [&](Sketch& s, const Positions& p, ValueId x) { s.g.node(Op::kRope, {x, p.positions}, odd); }},
      {"layer 3, kv_store: input 1 has shape [8, 4], expects [16, 4]",
       [](Sketch& s, const Positions& p, ValueId x) { s.g.kv_store(x, s.x(8), p.positions, p.row_seq, p.table, 2, 8); }},
      {"layer 3, kv_store: input 4 must be the block table",
       [](Sketch& s, const Positions& p, ValueId x) { s.g.kv_store(x, x, p.positions, p.row_seq, p.row_seq, 2, 8); }},
      {"layer 3, attention: 4 heads do not divide over 3 KV heads",
       [](Sketch& s, const Positions& p, ValueId x) { s.g.attention(x, p.positions, p.row_seq, p.table, 4, 3, 4, 1); }},
      {"layer 3, view: shape [17, 4] at offset 0 does not fit into [16, 4]",
       [](Sketch& s, const Positions&, ValueId x) { s.g.view(x, {17, 4}); }},
      {"layer 3, view: shape [16, 4] at offset 1 does not fit into [16, 4]",
       [](Sketch& s, const Positions&, ValueId x) { s.g.view(x, {16, 4}, 1); }},
      {"layer 3, view: shape [1] at offset 65 does not fit into [16, 4]", [](Sketch& s, const Positions&, ValueId x) { s.g.view(x, {1}, 65); }},
      {"layer 3, view: shape [4294967296, 4294967296] at offset 0 does not fit",
       [](Sketch& s, const Positions&, ValueId x) { s.g.view(x, {1ull << 32, 1ull << 32}); }},
      {"layer 3, view: shape [16, 0] at offset 0 does not fit", [](Sketch& s, const Positions&, ValueId x) { s.g.view(x, {16, 0}); }},
      {"operation 99 is not known", [](Sketch& s, const Positions&, ValueId x) { s.g.node(static_cast<Op>(99), {x}); }},
      {"weight 16 does not exist, the model has 16", [](Sketch& s, const Positions&, ValueId) { s.g.weight(16); }},
      {"graph input kind 9 is not known", [](Sketch& s, const Positions&, ValueId) { s.g.input(static_cast<InputKind>(9)); }},
      {"is not an activation", [](Sketch& s, const Positions& p, ValueId) { s.g.output(p.table); }},
      {"node 1: attention of layer 3 comes before that layer's KV store",
       [](Sketch& s, const Positions& p, ValueId x) {
         s.g.attention(x, p.positions, p.row_seq, p.table, 2, 2, 8, 1);
         s.finish();
       }},
  };
  for (const auto& [words, build] : cases) {
    Sketch s(4, 2);
    const Positions in(s);
    s.g.layer = 3;
    const ValueId x = s.x(16);
    CHECK_THROWS_WITH(build(s, in, x), Catch::Contains(words));
    // The first error sticks.
    if (std::string_view(words).find("KV store") == std::string_view::npos) CHECK_THROWS_WITH(s.finish(), Catch::Contains(words));
  }
  Sketch none(4, 0);
  CHECK_THROWS_WITH(none.g.input(InputKind::kOutRows), Catch::Contains("graph input out_rows has no entries here"));
}

TEST_CASE("engine/graph: validate refuses every damage to a good graph") {
  Sketch s;
  const Positions in(s);
  const ValueId x = s.x(16);                                     // node 0
  const ValueId y = s.matmul(x, 16, 16);                         // 1
  const ValueId v = s.g.view(y, {8, 8});                         // 2
  const ValueId z = s.g.silu(v);                                 // 3
  s.g.kv_store(y, y, in.positions, in.row_seq, in.table, 2, 8);  // 4
  s.g.output(z);
  const Graph good = s.finish();
  REQUIRE(validate(good).ok());
  const std::pair<const char*, std::function<void(Graph&)>> cases[] = {
      {"node 1 reads value", [&](Graph& g) { g.nodes[1].inputs[0] = z; }},
      {"node 1 reads value", [&](Graph& g) { g.nodes[1].inputs[0] = y; }},  // itself: the smallest cycle
      {"node 3: layer 0, silu: input 0 is value 77", [](Graph& g) { g.nodes[3].inputs[0] = 77; }},
      {"node 3: operation 12 is not known", [](Graph& g) { g.nodes[3].op = static_cast<Op>(12); }},
      {"node 3: has 0 outputs, expects 1", [](Graph& g) { g.nodes[3].outputs.clear(); }},
      {"node 4: has 1 outputs, expects 0", [&](Graph& g) { g.nodes[4].outputs = {z}; }},
      {"node 3: output 0 is not its own value", [&](Graph& g) { g.nodes[3].outputs[0] = y; }},
      {"node 3: output 0 is not its own value", [](Graph& g) { g.nodes[3].outputs[0] = 500; }},
      {"node 3: output 0 has shape [8, 9], expects [8, 8]",
       [&](Graph& g) {
         g.values[z].shape = {8, 9};
       }},
      {"no node makes it", [&](Graph& g) { g.values[z].producer = 17; }},
      {"is a view of", [&](Graph& g) { g.values[v].alias_of = z; }},
      {"node 2: output 0 does not share the memory", [&](Graph& g) { g.values[v].alias_of = kNone; }},
      {"node 2: output 0 does not share the memory", [&](Graph& g) { g.values[v].alias_of = x; }},
      {"node 2: output 0 does not share the memory", [&](Graph& g) { g.values[v].alias_offset = 4; }},
      {"node 3: output 0 does not share the memory", [&](Graph& g) { g.values[z].alias_of = y; }},
      {"graph input kind 8 is not known", [&](Graph& g) { g.values[in.table].index = 8; }},
      {"graph output 600 is not an activation", [](Graph& g) { g.outputs[0] = 600; }},
  };
  for (const auto& [words, damage] : cases) {
    CAPTURE(words);
    Graph graph = good;
    damage(graph);
    const Status status = validate(graph);
    REQUIRE_FALSE(status.ok());
    CHECK_THAT(status.error().text, Catch::Contains(words));
  }
}

TEST_CASE("engine/graph: live nodes are those that reach an output or the KV") {
  Sketch s;
  const Positions in(s);
  const ValueId x = s.x(16);                                     // 0 live
  const ValueId k = s.matmul(x, 16, 16);                         // 1 live: stored
  const ValueId unread = s.g.silu(k);                            // 2 dead
  s.g.add(unread, unread);                                       // 3 dead, and so 2 has no live reader
  s.g.kv_store(k, k, in.positions, in.row_seq, in.table, 2, 8);  // 4 live
  const ValueId twice = s.g.add(x, x);                           // 5 live
  const ValueId view = s.g.view(twice, {8, 2}, 16);              // 6 live
  const ValueId inner = s.g.view(view, {8}, 8);                  // 7 live
  s.g.output(inner);
  const Graph graph = s.finish();
  const auto live = graph.live_nodes();
  CHECK(live == std::vector<bool>{true, true, false, false, true, true, true, true});
  const auto edges = graph.consumer_edges(live);
  CHECK(edges[x] == 3);  // the matmul once, x + x twice
  CHECK(edges[k] == 2);  // both slots of the store, not the dead silu
  CHECK(edges[unread] == 0);
  uint64_t offset = 0;
  CHECK(graph.alias_root(inner, &offset) == twice);
  CHECK(offset == (16 + 8) * 4);
  CHECK(graph.alias_root(x, &offset) == x);
  CHECK(offset == 0);
}

TEST_CASE("engine/graph: the Graphviz text names operations shapes devices inputs and outputs") {
  Sketch s;
  const ValueId x = s.x(16);
  s.g.output(s.g.silu(x));
  const std::string dot = dump_dot(s.finish(), {"cuda", "cpu"});
  for (const char* words : {"digraph G", "token_ids\\n[4]", "0: get_rows|layer 0|[16, 4]|cuda", "1: silu|layer 0|[16, 4]|cpu", "n0 -> n1;",
                            "doublecircle, label=\"output\\n[16, 4]\"", "lightyellow", "lightblue"})
    CHECK_THAT(dot, Catch::Contains(words));
}

}  // namespace
}  // namespace minfer::test
