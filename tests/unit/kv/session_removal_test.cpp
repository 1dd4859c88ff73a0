// Session::remove on the reference device: f32 KV, one or two layers.
#include <catch2/catch.hpp>
#include <cmath>

#include "engine/memory/k_rotation.hpp"
#include "unit/engine/session_fixture.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

double largest_difference(const Rows& a, const Rows& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t i = 0; i < a[r].size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(a[r][i]) - b[r][i]));
  return worst;
}

}  // namespace

// In a model of one layer a row's K and V depend on its token and position alone, so a shifted context must equal a fresh one.
TEST_CASE("engine/session: after a removal a one-layer model gives the logits of a fresh prefill") {
  ToyOptions one_layer;
  one_layer.n_layers = 1;
  const ToyModel toy(one_layer);
  const auto tokens = toy_tokens(200), more = toy_tokens(10, 7);
  for (const auto& [first, count] : {std::pair<uint32_t, uint32_t>{0, 1}, {0, 64}, {5, 100}, {64, 64}, {70, 129}, {199, 1}}) {
    const auto shifted = make_session(toy), fresh = make_session(toy);
    step(*shifted, tokens, 0);
    REQUIRE(shifted->remove(0, first, count).ok());
    CHECK(shifted->cursor(0) == 200 - count);
    std::vector<int32_t> left = slice(tokens, 0, first);
    left.insert(left.end(), tokens.begin() + first + count, tokens.end());
    step(*fresh, left, 0);
    INFO("removed " << count << " from " << first << " on");
    CHECK(largest_difference(step(*shifted, more, 10), step(*fresh, more, 10)) < 2e-5);
  }
}

TEST_CASE("engine/session: removing the tail is a rollback to the bit and moves nothing") {
  ToyModel toy;
  const auto tokens = toy_tokens(200), more = toy_tokens(10, 7);
  const auto removed = make_session(toy), fresh = make_session(toy);
  step(*removed, tokens, 0);
  REQUIRE(removed->remove(0, 90, 110).ok());
  step(*fresh, slice(tokens, 0, 90), 0);
  CHECK(same_bits(step(*removed, more, 10), step(*fresh, more, 10)));
  REQUIRE(removed->remove(0, 0, 100).ok());
  CHECK(removed->cursor(0) == 0);
  REQUIRE(fresh->rollback(0, 0).ok());
  CHECK(same_bits(step(*removed, more, 10), step(*fresh, more, 10)));
  CHECK(toy.device().counters.kv_copies == 0);
  CHECK(toy.device().counters.kv_rotations == 0);
}

TEST_CASE("engine/session: removing no position changes nothing and one past the end is refused") {
  ToyModel toy;
  const auto tokens = toy_tokens(100), more = toy_tokens(3, 7);
  const auto session = make_session(toy), untouched = make_session(toy);
  step(*session, tokens, 0);
  step(*untouched, tokens, 0);
  CHECK(session->remove(0, 0, 0).ok());
  CHECK(session->remove(0, 100, 0).ok());
  for (const auto& [first, count] : {std::pair<uint32_t, uint32_t>{0, 101}, {100, 1}, {101, 0}, {50, UINT32_MAX}}) {
    const Status refused = session->remove(0, first, count);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  }
  CHECK_FALSE(session->remove(1, 0, 0).ok());
  CHECK(session->cursor(0) == 100);
  CHECK(same_bits(step(*session, more, 3), step(*untouched, more, 3)));
}

TEST_CASE("engine/session: a shift leaves a sequence that shares its blocks alone") {
  ToyModel toy;
  const CParams cparams = toy_cparams(512, 2);
  const auto tokens = toy_tokens(150), more = toy_tokens(20, 7);
  for (const SeqId shifted : {0u, 1u}) {
    const auto session = make_session(toy, cparams), control = make_session(toy, cparams);
    for (auto* s : {session.get(), control.get()}) {
      step(*s, tokens, 0, 0);
      REQUIRE(s->share_prefix(0, 1, 100).ok());
      step(*s, slice(more, 0, 5), 0, 1);
    }
    REQUIRE(session->remove(shifted, 10, 80).ok());
    CHECK(same_bits(step(*session, more, 20, 1 - shifted), step(*control, more, 20, 1 - shifted)));
  }
}

TEST_CASE("engine/session: a removal that a device refuses changes nothing and one that fails half-way keeps the rows before") {
  ToyModel toy;
  const auto tokens = toy_tokens(150), more = toy_tokens(10, 7);
  const auto session = make_session(toy), untouched = make_session(toy), prefix = make_session(toy);
  step(*session, tokens, 0);
  step(*untouched, tokens, 0);
  step(*prefix, slice(tokens, 0, 20), 0);
  toy.device().fail_kv_rotate = 1;  // the check of the second layer
  Status failed = session->remove(0, 20, 70);
  REQUIRE_FALSE(failed.ok());
  CHECK_THAT(failed.error().text, Catch::Contains("layer 1") && Catch::Contains("injected"));
  CHECK(session->cursor(0) == 150);
  CHECK(same_bits(step(*session, more, 10), step(*untouched, more, 10)));

  toy.device().fail_kv_rotate = 3;  // both checks pass, the first layer is turned, the second is not
  failed = session->remove(0, 20, 70);
  REQUIRE_FALSE(failed.ok());
  CHECK_THAT(failed.error().text, Catch::Contains("20 positions are left"));
  CHECK(session->cursor(0) == 20);
  CHECK(same_bits(step(*session, more, 10), step(*prefix, more, 10)));
}

TEST_CASE("engine/k_rotation: finds how each layer turns its keys and refuses positions that enter otherwise") {
  const ToyModel toy;
  const GraphParams params = make_graph_params(1, 0, toy_cparams());
  auto graph = toy.model->build(params);
  REQUIRE(graph.ok());
  const auto found = find_k_rotations(*graph, 2, toy.model->placement());
  REQUIRE(found.ok());
  REQUIRE(found->size() == 2);
  for (const KvRotation& rotation : *found) {
    CHECK(rotation.rope.n_head == 2);
    CHECK(rotation.rope.head_dim == 8);
    CHECK(rotation.rope.rope_freq_base > 0);
    CHECK(rotation.freq_factors == kNone);
    CHECK(rotation.delta == 0);
  }
  CHECK_FALSE(find_k_rotations(*graph, 3, toy.model->placement()).ok());  // a layer without a store

  Graph unrotated = *graph, counted = *graph;
  for (Node& node : unrotated.nodes)
    if (node.op == Op::kKvStore && node.layer == 1) node.inputs[0] = node.inputs[1];  // K straight from a product
  const auto refused = find_k_rotations(unrotated, 2, toy.model->placement());
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().text, Catch::Contains("layer 1") && Catch::Contains("not from a rotation"));

  ValueId positions = kNone;
  for (const Node& node : counted.nodes)
    if (node.op == Op::kRope) positions = node.inputs[1];
  for (Node& node : counted.nodes)
    if (node.op == Op::kGetRows) node.inputs[1] = positions;  // an embedding of positions
  const auto embedded = find_k_rotations(counted, 2, toy.model->placement());
  REQUIRE_FALSE(embedded.ok());
  CHECK_THAT(embedded.error().text, Catch::Contains("reads positions"));
}
