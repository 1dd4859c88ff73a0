// The qwen3 plugin as the engine sees it: what differs from the decoders tested elsewhere.
#include <catch2/catch.hpp>

#include "arch_test.hpp"
#include "engine/schedule/fuse.hpp"

using namespace minfer;
using namespace minfer::test;
using Catch::Matchers::Contains;

namespace {

// 2 layers, 4 heads over 2 KV heads, width 32; heads of 16, which is not 32 / 4.
FakeMetadata small_model() {
  FakeMetadata m;
  m.values = {{"general.architecture", std::string("qwen3")},
              {"qwen3.block_count", uint64_t{2}},
              {"qwen3.context_length", uint64_t{512}},
              {"qwen3.embedding_length", uint64_t{32}},
              {"qwen3.feed_forward_length", uint64_t{64}},
              {"qwen3.attention.head_count", uint64_t{4}},
              {"qwen3.attention.head_count_kv", uint64_t{2}},
              {"qwen3.attention.key_length", uint64_t{16}},
              {"qwen3.attention.value_length", uint64_t{16}},
              {"qwen3.attention.layer_norm_rms_epsilon", 1e-6},
              {"qwen3.rope.freq_base", 1e6}};
  const auto add = [&](const std::string& name, Shape shape) { m.tensors[name] = {DType::kF16, shape}; };
  add("token_embd.weight", {32, 50});
  add("output_norm.weight", {32});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    add(layer + "attn_norm.weight", {32});
    add(layer + "attn_q.weight", {32, 64});
    add(layer + "attn_k.weight", {32, 32});
    add(layer + "attn_v.weight", {32, 32});
    add(layer + "attn_q_norm.weight", {16});
    add(layer + "attn_k_norm.weight", {16});
    add(layer + "attn_output.weight", {64, 32});
    add(layer + "ffn_norm.weight", {32});
    add(layer + "ffn_gate.weight", {32, 64});
    add(layer + "ffn_up.weight", {32, 64});
    add(layer + "ffn_down.weight", {64, 32});
  }
  return m;
}

std::string refusal(const FakeMetadata& metadata) {
  const auto model = open_model(metadata);
  REQUIRE_FALSE(model.ok());
  return model.error().text;
}

}  // namespace

TEST_CASE("arch/qwen3: the size of a head is the file's own and no product has a bias") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  CHECK((*model)->info().head_dim == 16);
  CHECK((*model)->info().n_head_kv == 2);
  CHECK((*model)->weights().size() == 24);  // embedding, norm, 11 per layer
  const Graph graph = build(**model, 3, 3);
  const Node& attention = only(graph, Op::kAttention, 1);
  CHECK(attention.attrs.head_dim == 16);
  CHECK(attention.attrs.attn_scale == 0.25f);
  CHECK(graph.values[attention.inputs[0]].shape == Shape{64, 3});
  size_t products = 0;
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kRope) CHECK(node.attrs.rope_kind == RopeKind::kSplitHalves);
    if (node.op != Op::kMatMul) continue;
    ++products;
    CHECK(node.inputs.size() == 2);
  }
  CHECK(products == 15);
}

TEST_CASE("arch/qwen3: each head of q and of k is normed between its product and its rotation") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  const Graph graph = build(**model, 5, 2);
  std::vector<std::string> norms;
  for (const Node& rope : graph.nodes) {
    if (rope.op != Op::kRope || rope.layer != 1) continue;
    const auto source = [&](const Node& node) -> const Node& { return graph.nodes[graph.values[node.inputs[0]].producer]; };
    const Node &flat = source(rope), &norm = source(flat), &heads = source(norm), &product = source(heads);
    CHECK(flat.op == Op::kView);
    REQUIRE(norm.op == Op::kRmsNorm);
    CHECK(norm.attrs.eps == 1e-6f);
    CHECK(heads.op == Op::kView);
    CHECK(product.op == Op::kMatMul);
    const uint64_t n_head = rope.attrs.n_head, rows = n_head == 4 ? 2 : 5;  // q is cut to the rows whose logits are wanted
    CHECK(graph.values[norm.outputs[0]].shape == Shape{16, n_head, rows});
    norms.push_back((*model)->weights()[graph.values[norm.inputs[1]].index].name);
  }
  CHECK(norms == std::vector<std::string>{"blk.1.attn_q_norm.weight", "blk.1.attn_k_norm.weight"});
}

TEST_CASE("arch/qwen3: projections with norms between are left unfused and the feed-forward part is fused") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  const Graph graph = build(**model, 3, 3);
  const std::vector<uint32_t> device(graph.nodes.size(), 0);
  const FusedGraph fused = fuse(graph, device, {}, [](const Node&, uint32_t) { return true; });
  size_t qkv = 0, ffn = 0;
  for (const Node& node : fused.graph.nodes) {
    qkv += node.op == Op::kFusedQkv;
    ffn += node.op == Op::kFusedFfn;
  }
  CHECK(qkv == 0);
  CHECK(ffn == 2);
}

TEST_CASE("arch/qwen3: a file without the sizes of its heads or with others than its norms is refused") {
  for (const std::string key : {"qwen3.attention.key_length", "qwen3.attention.value_length"}) {
    FakeMetadata metadata = small_model();
    metadata.values.erase(key);
    CHECK_THAT(refusal(metadata), Contains("architecture qwen3: ") && Contains(key + " is missing"));
  }
  FakeMetadata metadata = small_model();
  metadata.values["qwen3.attention.value_length"] = uint64_t{8};
  CHECK_THAT(refusal(metadata), Contains("qwen3.attention.value_length is 8: must equal the head size 16"));
  for (const uint64_t size : {uint64_t{0}, uint64_t{15}, uint64_t{1} << 40}) {
    metadata = small_model();
    metadata.values["qwen3.attention.key_length"] = size;
    CHECK_THAT(refusal(metadata), Contains("qwen3.attention.") && Contains(std::to_string(size)));
  }
  for (const std::string norm : {"blk.1.attn_q_norm.weight", "blk.0.attn_k_norm.weight"}) {
    metadata = small_model();
    metadata.tensors[norm].shape = Shape{8};
    CHECK_THAT(refusal(metadata), Contains("tensor " + norm + " has shape [8] in the file") && Contains("[16]"));
    metadata.tensors.erase(norm);
    CHECK_THAT(refusal(metadata), Contains("tensor " + norm + " is missing from the file") && Contains("[16]"));
  }
}
