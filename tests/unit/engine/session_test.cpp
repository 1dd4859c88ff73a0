// What a session promises of its numbers, on the toy model.
#include <array>
#include <functional>

#include "session_fixture.hpp"
#include "toy_forward.hpp"

namespace minfer::test {
namespace {

TEST_CASE("engine/session: logits equal a plain double forward pass") {
  ToyOptions variants[6];
  variants[1].biases = false;
  variants[2].tied = true;
  variants[3].qk_norm = true;
  variants[4].n_layers = 3;
  variants[4].n_head_kv = 4;
  variants[5].window = 5;
  for (const ToyOptions& options : variants) {
    CAPTURE(options.biases, options.tied, options.qk_norm, options.n_layers, options.window);
    ToyModel toy(options);
    const auto session = make_session(toy);
    const auto tokens = toy_tokens(70);
    const auto expected = toy_forward(toy.architecture, tokens);
    REQUIRE(spread(expected[69]) > 0.5);
    // All rows of a first chunk, a chunk without logits over the edge of a KV block, a cut chunk, single tokens.
    CHECK(worst(step(*session, slice(tokens, 0, 20), 20), expected, 0) < 1e-5);
    CHECK(step(*session, slice(tokens, 20, 41), 0).empty());
    CHECK(worst(step(*session, slice(tokens, 61, 5), 2), expected, 64) < 1e-5);
    for (size_t t = 66; t < 70; ++t) CHECK(worst(step(*session, slice(tokens, t, 1), 1), expected, t) < 1e-5);
    CHECK(session->cursor(0) == 70);
  }
}

TEST_CASE("engine/session: forward_cached_isolates_kv_between_caches of two sessions") {
  ToyModel toy;
  const auto a = toy_tokens(12, 1);
  const auto b = toy_tokens(12, 2);
  const auto one = make_session(toy);
  const auto two = make_session(toy);
  Rows last_one, last_two;
  for (size_t t = 0; t < 12; ++t) {  // interleaved step by step
    last_one = step(*one, slice(a, t, 1), 1);
    last_two = step(*two, slice(b, t, 1), 1);
  }
  CHECK(worst(last_one, toy_forward(toy.architecture, a), 11) < 1e-5);
  CHECK(worst(last_two, toy_forward(toy.architecture, b), 11) < 1e-5);
  CHECK_FALSE(same_bits(last_one, last_two));
}

TEST_CASE("engine/session: sequence_count_is_data_not_topology") {
  ToyModel toy;
  const auto session = make_session(toy, toy_cparams(256, 3));
  const auto tokens = toy_tokens(12);
  const auto expected = toy_forward(toy.architecture, slice(tokens, 0, 3));
  step(*session, slice(tokens, 0, 6), 2, 0);
  const uint64_t uid = session->last_graph()->uid;
  const auto head = slice(tokens, 0, 3);
  const SeqChunk two[] = {{1, head, 1}, {2, head, 1}};
  const Rows rows = step(*session, two);
  CHECK(session->last_graph()->uid == uid);  // 6 rows, 2 outputs, whoever they belong to
  CHECK(session->stats().builds == 1);
  CHECK(session->stats().reuses == 1);
  CHECK(worst({rows[0]}, expected, 2) < 1e-5);
  CHECK(worst({rows[1]}, expected, 2) < 1e-5);
}

TEST_CASE("engine/session: tail_reduction_matches_full_nt for every number of output rows") {
  ToyModel toy;
  const auto tokens = toy_tokens(9);
  const Rows full = step(*make_session(toy), tokens, 9);
  REQUIRE(full.size() == 9);
  for (uint32_t n_out = 1; n_out < 9; ++n_out) {
    CAPTURE(n_out);
    const auto session = make_session(toy);
    const Rows tail = step(*session, tokens, n_out);
    const Graph& graph = session->last_graph()->graph;
    REQUIRE(count_ops(*session, Op::kGetRows) == 3);  // the embedding and the two cuts
    CHECK(graph.values[graph.outputs[0]].shape == Shape{50, n_out});
    CHECK(same_bits(tail, Rows(full.end() - n_out, full.end())));
    // The rows that were cut have still left their K and V.
    CHECK(same_bits(step(*session, {5}, 1), [&] {
      const auto other = make_session(toy);
      step(*other, tokens, 9);
      return step(*other, {5}, 1);
    }()));
  }
}

TEST_CASE("engine/session: fused_qkv_matches_unfused_decode bit for bit") {
  ToyModel toy;
  const auto tokens = toy_tokens(12);
  CParams unfused = toy_cparams();
  unfused.fuse_qkv = unfused.fuse_ffn = false;
  const auto with = make_session(toy);
  const auto without = make_session(toy, unfused);
  step(*with, slice(tokens, 0, 6), 0);
  step(*without, slice(tokens, 0, 6), 0);
  for (size_t t = 6; t < 12; ++t) {
    const uint64_t before = toy.device().counters.fused_nodes;
    const Rows a = step(*with, slice(tokens, t, 1), 1);
    REQUIRE(count_ops(*with, Op::kFusedQkv) == 2);
    REQUIRE(with->last_graph()->n_fused == 4);
    REQUIRE(toy.device().counters.fused_nodes == before + 4);
    const Rows b = step(*without, slice(tokens, t, 1), 1);
    REQUIRE(count_ops(*without, Op::kFusedQkv) == 0);
    CHECK(same_bits(a, b));
  }
}

TEST_CASE("engine/session: reused_cache_across_prompts_matches_a_fresh_cache") {
  ToyModel toy;
  const auto first = toy_tokens(80, 1);
  // Shorter than the first prompt, longer, and one after tokens were decoded past it.
  const std::pair<size_t, size_t> cases[] = {{30, 0}, {140, 0}, {80, 10}};
  for (const auto& [length, decoded] : cases) {
    CAPTURE(length, decoded);
    const auto prompt = toy_tokens(length, 2);
    const auto used = make_session(toy);
    step(*used, first, 1);
    for (size_t i = 0; i < decoded; ++i) step(*used, {static_cast<int32_t>(i)}, 1);
    REQUIRE(used->rollback(0, 0).ok());
    const auto fresh = make_session(toy);
    const Rows a = step(*used, prompt, static_cast<uint32_t>(length));
    CHECK(same_bits(a, step(*fresh, prompt, static_cast<uint32_t>(length))));
    for (int32_t token : {7, 8, 9}) CHECK(same_bits(step(*used, {token}, 1), step(*fresh, {token}, 1)));
  }
}

TEST_CASE("engine/session: a_two_sequence_batch_matches_two_single_sequence_forwards") {
  ToyModel toy;
  const auto a = toy_tokens(70, 1);
  const auto b = toy_tokens(66, 2);
  const auto both = make_session(toy, toy_cparams(256, 2));
  const auto alone_a = make_session(toy);
  const auto alone_b = make_session(toy);
  const SeqChunk prefill[] = {{0, a, 3}, {1, b, 2}};
  const Rows together = step(*both, prefill);
  REQUIRE(together.size() == 5);
  CHECK(same_bits({together.begin(), together.begin() + 3}, step(*alone_a, a, 3)));
  CHECK(same_bits({together.begin() + 3, together.end()}, step(*alone_b, b, 2)));
  for (int32_t i = 0; i < 4; ++i) {
    const std::vector<int32_t> next_a{i}, next_b{i};  // the same token, so that only the past differs
    const SeqChunk decode[] = {{1, next_b, 1}, {0, next_a, 1}};
    const Rows rows = step(*both, decode);
    CHECK(same_bits({rows[1]}, step(*alone_a, next_a, 1)));
    CHECK(same_bits({rows[0]}, step(*alone_b, next_b, 1)));
    CHECK_FALSE(same_bits({rows[0]}, {rows[1]}));
  }
}

TEST_CASE("engine/session: prefix_reuse_matches_a_full_prefill") {
  ToyModel toy;
  const auto tokens = toy_tokens(150);
  const Rows whole = step(*make_session(toy), tokens, 150);
  for (const size_t head : {1u, 63u, 64u, 65u, 149u}) {
    CAPTURE(head);
    const auto session = make_session(toy);
    step(*session, tokens, 0);
    REQUIRE(session->rollback(0, static_cast<uint32_t>(head)).ok());
    const auto tail = static_cast<uint32_t>(150 - head);
    CHECK(same_bits(step(*session, slice(tokens, head, tail), tail), Rows(whole.end() - tail, whole.end())));
  }
}

TEST_CASE("engine/session: a shared prefix gives the same logits as a prefill of its own") {
  ToyModel toy;
  for (const uint32_t shared : {10u, 64u, 70u, 100u}) {
    CAPTURE(shared);
    const auto prompt = toy_tokens(100);
    const auto session = make_session(toy, toy_cparams(512, 3));
    step(*session, prompt, 0, 0);
    REQUIRE(session->share_prefix(0, 1, shared).ok());
    REQUIRE(session->share_prefix(0, 2, shared).ok());
    CHECK(session->cursor(1) == shared);
    // All three go on with different tokens; the donor writes into its shared block too.
    std::vector<std::vector<int32_t>> texts = {prompt, slice(prompt, 0, shared), slice(prompt, 0, shared)};
    for (int32_t i = 0; i < 3; ++i)
      for (const SeqId seq : {1u, 0u, 2u}) {
        const auto token = static_cast<int32_t>(seq * 10 + static_cast<uint32_t>(i));
        texts[seq].push_back(token);
        const Rows row = step(*session, {token}, 1, seq);
        CHECK(worst(row, toy_forward(toy.architecture, texts[seq]), texts[seq].size() - 1) < 1e-5);
      }
    // Copy on write: two of three take a copy where the block was not full, each in both layers.
    CHECK(toy.device().counters.kv_copies == (shared == 64 ? 0u : shared == 10 ? 4u : 4u));
    toy.device().counters.kv_copies = 0;
  }
}

TEST_CASE("engine/session: observing every node gives the same numbers") {
  ToyOptions options;
  options.qk_norm = true;
  ToyModel toy(options);
  const auto tokens = toy_tokens(8);
  CParams observed = toy_cparams();
  observed.observe = true;
  const auto plain = make_session(toy);
  const auto session = make_session(toy, observed);
  uint32_t calls = 0;
  bool finite = true;
  std::vector<float> last;
  session->set_observer([&](const Graph&, NodeId, std::span<const float> values) {
    ++calls;
    for (float v : values) finite = finite && std::isfinite(v);
    last.assign(values.begin(), values.end());
  });
  CHECK(same_bits(step(*session, tokens, 3), step(*plain, tokens, 3)));
  const CompiledGraph& graph = *session->last_graph();
  uint32_t with_result = 0;
  for (const Split& split : graph.splits) {
    REQUIRE(split.nodes.size() == 1);
    with_result += !graph.graph.nodes[split.nodes[0]].outputs.empty();
  }
  CHECK(graph.memory.n_in_place == 0);
  CHECK(calls == with_result);
  CHECK(calls > 20);
  CHECK(finite);
  CHECK(plain->last_graph()->splits.size() == 1);
  CHECK(last.size() == 150);  // the logits come last
}

TEST_CASE("engine/session: layers on two devices give the bits of one device") {
  ToyOptions options;
  options.n_layers = 3;
  options.qk_norm = true;
  ToyModel single(options);
  const auto tokens = toy_tokens(80);
  const auto reference = make_session(single);
  const Rows prefill = step(*reference, slice(tokens, 0, 70), 5);
  const Rows decode = step(*reference, slice(tokens, 70, 1), 1);
  for (const uint32_t on_first : {1u, 2u})
    for (const bool first_is_opaque : {true, false})
      for (const bool private_values : {true, false}) {
        CAPTURE(on_first, first_is_opaque, private_values);
        ReferenceOptions opaque;
        opaque.name = "opaque";
        opaque.host = false;
        opaque.private_values = private_values;
        ReferenceOptions host;
        host.name = "host";
        host.private_values = private_values;
        std::vector<ReferenceOptions> devices = {opaque, host};
        if (!first_is_opaque) std::swap(devices[0], devices[1]);
        ToyModel toy(options, devices, {on_first, std::nullopt});
        const auto session = make_session(toy);
        CHECK(same_bits(step(*session, slice(tokens, 0, 70), 5), prefill));
        // Embedding on the last device, the first layers, then the rest.
        REQUIRE(session->last_graph()->splits.size() >= 3);
        REQUIRE(session->stats().executor.staged_bytes == 2u * 70 * 32 * 4);
        REQUIRE(session->last_graph()->n_fused > 0);
        CHECK(same_bits(step(*session, slice(tokens, 70, 1), 1), decode));
        ReferenceDevice& hidden = toy.device(first_is_opaque ? 0 : 1);
        CHECK(hidden.counters.reads > 0);
        CHECK(hidden.counters.writes > 0);
        CHECK(hidden.counters.syncs > 0);
      }
}

TEST_CASE("engine/session: devices that run late are waited for at every cut and before logits are read") {
  ToyModel plain;
  const auto tokens = toy_tokens(80);
  const auto reference = make_session(plain, toy_cparams(256, 2));
  const auto drive = [&](Session& session) {
    std::vector<Rows> all;
    all.push_back(step(session, slice(tokens, 0, 40), 3));
    step(session, slice(tokens, 40, 30), 0);
    all.push_back(step(session, slice(tokens, 70, 1), 1));
    REQUIRE(session.share_prefix(0, 1, 71).ok());
    for (SeqId seq : {0u, 1u}) all.push_back(step(session, slice(tokens, 71, 1), 1, seq));
    return all;
  };
  const std::vector<Rows> expected = drive(*reference);
  for (const bool two_devices : {false, true})
    for (const bool host : {true, false}) {
      CAPTURE(two_devices, host);
      ReferenceOptions late;
      late.deferred = true;
      late.host = host;
      ToyModel toy({}, two_devices ? std::vector{late, late} : std::vector{late}, {two_devices ? 1u : 2u, std::nullopt});
      const auto session = make_session(toy, toy_cparams(256, 2));
      const std::vector<Rows> rows = drive(*session);
      for (size_t i = 0; i < rows.size(); ++i) CHECK(same_bits(rows[i], expected[i]));
      REQUIRE(session->last_graph()->splits.size() == (two_devices ? 3 : 1));
      CHECK(toy.device().counters.syncs > 0);
    }
}

TEST_CASE("engine/session: fusion is left out where a device refuses it and the numbers stay") {
  const auto tokens = toy_tokens(10);
  ToyModel plain;
  const Rows expected = step(*make_session(plain), tokens, 4);
  const auto with = [&](std::function<bool(const Graph&, const Node&)> supports) {
    ReferenceOptions options;
    options.supports = std::move(supports);
    ToyModel toy({}, {options});
    const auto session = make_session(toy);
    CHECK(same_bits(step(*session, tokens, 4), expected));
    return std::array{count_ops(*session, Op::kFusedQkv), count_ops(*session, Op::kFusedFfn), count_ops(*session, Op::kSiluMul)};
  };
  // The last layer is cut before Q: its q comes from other rows than k and v, and it does not fuse.
  CHECK(with([](const Graph&, const Node&) { return true; }) == std::array{1u, 2u, 0u});
  CHECK(with([](const Graph&, const Node& n) { return n.op != Op::kFusedQkv; }) == std::array{0u, 2u, 0u});
  CHECK(with([](const Graph&, const Node& n) { return n.op != Op::kFusedFfn; }) == std::array{1u, 0u, 2u});
  CHECK(with([](const Graph&, const Node& n) { return n.op != Op::kFusedFfn || n.layer != 1; }) == std::array{1u, 1u, 1u});
  // Refused one after the other: SiluMul is first asked about when FusedFfn is gone.
  CHECK(with([](const Graph&, const Node& n) { return n.op < Op::kSiluMul; }) == std::array{0u, 0u, 0u});
}

}  // namespace
}  // namespace minfer::test
