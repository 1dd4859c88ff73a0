// When a graph is used again, when it is built, and what outlives it.
#include <functional>
#include <map>

#include "session_fixture.hpp"
#include "toy_forward.hpp"

namespace minfer::test {
namespace {

TEST_CASE("engine/reuse: reuse_requires_equal_params in every field of GraphParams and CParams") {
  const auto compiled = [](const GraphParams& params) {
    auto graph = std::make_unique<CompiledGraph>();
    graph->params = params;
    return graph;
  };
  const GraphParams base = make_graph_params(7, 3, toy_cparams());
  GraphCache cache;
  cache.insert(compiled(base));
  REQUIRE(cache.find(base) != nullptr);
  const std::pair<const char*, void (*)(GraphParams&)> flips[] = {
      {"n_tokens", [](GraphParams& p) { ++p.n_tokens; }},
      {"n_out", [](GraphParams& p) { ++p.n_out; }},
      {"gtype", [](GraphParams& p) { p.gtype = GraphType::kDecode; }},
      {"weights_version", [](GraphParams& p) { ++p.weights_version; }},
      {"n_ctx", [](GraphParams& p) { ++p.cparams.n_ctx; }},
      {"max_seqs", [](GraphParams& p) { ++p.cparams.max_seqs; }},
      {"kv_format", [](GraphParams& p) { p.cparams.kv_format = KvFormat::kQ8_0; }},
      {"fuse_qkv", [](GraphParams& p) { p.cparams.fuse_qkv = !p.cparams.fuse_qkv; }},
      {"fuse_ffn", [](GraphParams& p) { p.cparams.fuse_ffn = !p.cparams.fuse_ffn; }},
      {"placement_id", [](GraphParams& p) { ++p.cparams.placement_id; }},
      {"observe", [](GraphParams& p) { p.cparams.observe = !p.cparams.observe; }},
  };
  for (const auto& [name, flip] : flips) {
    CAPTURE(name);
    GraphParams other = base;
    flip(other);
    CHECK(cache.find(other) == nullptr);
    CHECK(cache.find(base) != nullptr);
  }
  // A field added to either struct changes its size: add it to the flips above, then here.
  CHECK(sizeof(CParams) == 24);
  CHECK(sizeof(GraphParams) == 48);
}

TEST_CASE("engine/reuse: a graph is built once per rows and outputs and keeps its uid") {
  ToyModel toy;
  const auto session = make_session(toy);
  const auto tokens = toy_tokens(60);
  uint64_t last_uid = 0;
  session->on_build([&](const CompiledGraph& graph) {
    CHECK(graph.uid > last_uid);
    last_uid = graph.uid;
  });
  // Distinct (rows, outputs): (16,0) (16,1) (5,1) (1,1) (1,0).
  const std::pair<size_t, uint32_t> steps[] = {{16, 0}, {16, 0}, {16, 1}, {5, 1}, {1, 1}, {1, 1}, {1, 0}, {1, 1}, {1, 1}};
  std::map<std::pair<size_t, uint32_t>, uint64_t> uids;
  size_t at = 0;
  for (const auto& [n, n_out] : steps) {
    step(*session, slice(tokens, at, n), n_out);
    at += n;
    const uint64_t uid = session->last_graph()->uid;
    const auto [known, fresh] = uids.try_emplace({n, n_out}, uid);
    CHECK(known->second == uid);
  }
  CHECK(session->stats().builds == 5);
  CHECK(session->stats().reuses == 4);
  const auto second = make_session(toy);
  step(*second, slice(tokens, 0, 16), 0);
  CHECK(second->last_graph()->uid > last_uid);  // never reused in the process
}

TEST_CASE("engine/reuse: allocator_survives_rebuild with KV regions and scratch in place") {
  ToyModel toy;
  const auto session = make_session(toy, toy_cparams(), 1);  // every other shape is a rebuild
  const auto tokens = toy_tokens(30);
  const auto expected = toy_forward(toy.architecture, tokens);
  step(*session, slice(tokens, 0, 20), 0);
  const uint64_t allocs = toy.device().counters.allocs;
  const uint64_t kv_bytes = session->stats().kv_bytes;
  REQUIRE(kv_bytes == 2u * 2 * 256 * 2 * 8 * 4);  // K and V, layers, positions, heads, head size, f32
  Rows row;
  for (size_t t = 20; t < 30; ++t) row = step(*session, slice(tokens, t, 1), t % 2);
  CHECK(session->stats().builds == 11);
  CHECK(session->stats().reuses == 0);
  CHECK(toy.device().counters.allocs == allocs);  // no region, no scratch was made again
  CHECK(worst(row, expected, 29) < 1e-5);         // and the rows written before the rebuilds are still read
}

TEST_CASE("engine/reuse: fuse_flags_are_part_of_the_reuse_identity and both settings are honoured") {
  ToyModel toy;
  const auto tokens = toy_tokens(9);
  std::vector<Rows> all;
  std::vector<GraphParams> params;
  for (const bool qkv : {false, true})
    for (const bool ffn : {false, true}) {
      CParams cparams = toy_cparams();
      cparams.fuse_qkv = qkv;
      cparams.fuse_ffn = ffn;
      const auto session = make_session(toy, cparams);
      all.push_back(step(*session, tokens, 9));
      CHECK(count_ops(*session, Op::kFusedQkv) == (qkv ? 2 : 0));
      CHECK(count_ops(*session, Op::kFusedFfn) == (ffn ? 2 : 0));
      CHECK(count_ops(*session, Op::kSiluMul) == (ffn ? 0 : 2));
      for (const GraphParams& other : params) CHECK(other != session->last_graph()->params);
      params.push_back(session->last_graph()->params);
    }
  for (const Rows& rows : all) CHECK(same_bits(rows, all[0]));
}

TEST_CASE("engine/reuse: structural_check_detects_different_graph in every part of it") {
  ToyModel toy;
  const GraphParams params = make_graph_params(4, 2, toy_cparams());
  const auto build = [&](const ToyOptions& options) {
    ToyArchitecture architecture(options);
    auto graph = build_graph(architecture, params);
    REQUIRE(graph.ok());
    return *graph;
  };
  const Graph base = build({});
  REQUIRE(verify_structural(base, build({})).empty());
  ToyOptions deeper;
  deeper.n_layers = 3;
  CHECK_THAT(verify_structural(base, build(deeper)), Catch::Contains("nodes against"));
  ToyOptions other_eps;
  other_eps.eps = 1e-6f;
  CHECK_THAT(verify_structural(base, build(other_eps)), Catch::Contains("rms_norm of layer 0 against rms_norm"));
  ToyOptions wider;
  wider.n_ff = 64;
  CHECK_THAT(verify_structural(base, build(wider)), Catch::Contains("[32, 48] against [32, 64]"));
  const std::function<void(Graph&)> changes[] = {[](Graph& g) { std::swap(g.nodes[8].inputs[0], g.nodes[8].inputs[1]); },
                                                 [](Graph& g) { g.nodes[5].layer = 1; },
                                                 [](Graph& g) { g.nodes[5].op = Op::kSilu; },
                                                 [](Graph& g) { g.values[3].dtype = DType::kF16; },
                                                 [](Graph& g) { std::swap(g.inputs[0], g.inputs[1]); },
                                                 [](Graph& g) { g.outputs.push_back(g.outputs[0]); },
                                                 [](Graph& g) { g.values.emplace_back(); }};
  for (const auto& change : changes) {
    Graph changed = base;
    change(changed);
    CHECK_FALSE(verify_structural(base, changed).empty());
  }
#ifndef NDEBUG
  // A build with the check on compares at every hit.
  const auto session = make_session(toy);
  step(*session, {1}, 1);
  toy.architecture.unstable = true;
  CHECK_THAT(failure(*session, {2}, 1).text, Catch::Contains("equal parameters gave different graphs"));
#endif
}

}  // namespace
}  // namespace minfer::test
