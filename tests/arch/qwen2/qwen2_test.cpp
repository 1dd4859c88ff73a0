// The qwen2 plugin as the engine sees it: loaded from the build folder, fed with synthetic metadata.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "arch_test.hpp"

using namespace minfer;
using namespace minfer::test;
using Catch::Matchers::Contains;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// 2 layers, 4 heads of 8 over 2 KV heads, 50 tokens.
FakeMetadata small_model(bool tied = true) {
  FakeMetadata m;
  m.values = {{"general.architecture", std::string("qwen2")},
              {"qwen2.block_count", uint64_t{2}},
              {"qwen2.context_length", uint64_t{512}},
              {"qwen2.embedding_length", uint64_t{32}},
              {"qwen2.feed_forward_length", uint64_t{64}},
              {"qwen2.attention.head_count", uint64_t{4}},
              {"qwen2.attention.head_count_kv", uint64_t{2}},
              {"qwen2.attention.layer_norm_rms_epsilon", 1e-6},
              {"qwen2.rope.freq_base", 1e6}};
  const auto add = [&](const std::string& name, Shape shape) { m.tensors[name] = {DType::kF16, shape}; };
  add("token_embd.weight", {32, 50});
  add("output_norm.weight", {32});
  if (!tied) add("output.weight", {32, 50});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    add(layer + "attn_norm.weight", {32});
    add(layer + "attn_q.weight", {32, 32});
    add(layer + "attn_k.weight", {32, 16});
    add(layer + "attn_v.weight", {32, 16});
    add(layer + "attn_q.bias", {32});
    add(layer + "attn_k.bias", {16});
    add(layer + "attn_v.bias", {16});
    add(layer + "attn_output.weight", {32, 32});
    add(layer + "ffn_norm.weight", {32});
    add(layer + "ffn_gate.weight", {32, 64});
    add(layer + "ffn_up.weight", {32, 64});
    add(layer + "ffn_down.weight", {64, 32});
  }
  return m;
}

std::vector<InputKind> input_kinds(const Graph& graph) {
  std::vector<InputKind> kinds;
  for (ValueId id : graph.inputs) kinds.push_back(static_cast<InputKind>(graph.values[id].index));
  return kinds;
}

InputKind kind_of(const Graph& graph, ValueId id) {
  REQUIRE(graph.values[id].kind == ValueKind::kInput);
  return static_cast<InputKind>(graph.values[id].index);
}

}  // namespace

TEST_CASE("arch/qwen2: reads the shape of the model") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  const ModelInfo& info = (*model)->info();
  CHECK(info.n_layers == 2);
  CHECK(info.n_embd == 32);
  CHECK(info.n_vocab == 50);
  CHECK(info.n_ctx_train == 512);
  CHECK(info.n_head_kv == 2);
  CHECK(info.head_dim == 8);
  CHECK((*model)->weights().size() == 26);  // embedding, norm, 12 per layer
}

TEST_CASE("arch/qwen2: every row is computed through both layers where all logits are wanted") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  const Graph graph = build(**model, 3, 3);
  CHECK(input_kinds(graph) == std::vector{InputKind::kTokenIds, InputKind::kPositions, InputKind::kRowSeq, InputKind::kBlockTable});
  for (uint32_t layer : {0u, 1u}) CHECK(ops(graph, layer).size() == 17);
  CHECK(graph.nodes.size() == 37);  // embedding, 17 per layer, norm and head
  REQUIRE(graph.outputs.size() == 1);
  CHECK(graph.values[graph.outputs[0]].shape == Shape{50, 3});
  const Node& attention = only(graph, Op::kAttention, 1);
  CHECK(attention.attrs.n_head == 4);
  CHECK(attention.attrs.n_head_kv == 2);
  CHECK(attention.attrs.head_dim == 8);
  CHECK(attention.attrs.attn_scale == Approx(0.35355339));
  CHECK(attention.attrs.window == 0);
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kRmsNorm) CHECK(node.attrs.eps == 1e-6f);
    if (node.op != Op::kRope) continue;
    CHECK(node.attrs.rope_kind == RopeKind::kSplitHalves);
    CHECK(node.attrs.rope_freq_base == 1e6f);
    CHECK(node.attrs.rope_freq_scale == 1);
  }
}

TEST_CASE("arch/qwen2: the products of q and k and v have biases and no other product has") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  const Graph graph = build(**model, 1, 1);
  std::vector<std::string> with_bias;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kMatMul || node.layer != 0) continue;
    const auto name = [&](size_t slot) { return (*model)->weights()[graph.values[node.inputs[slot]].index].name; };
    if (node.inputs.size() == 3) with_bias.push_back(name(1) + " + " + name(2));
  }
  CHECK(with_bias == std::vector<std::string>{"blk.0.attn_q.weight + blk.0.attn_q.bias", "blk.0.attn_k.weight + blk.0.attn_k.bias",
                                              "blk.0.attn_v.weight + blk.0.attn_v.bias"});
}

TEST_CASE("arch/qwen2: the last layer is cut to the rows whose logits are wanted before Q") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  const Graph graph = build(**model, 5, 2);
  CHECK(input_kinds(graph) == std::vector{InputKind::kTokenIds, InputKind::kPositions, InputKind::kRowSeq, InputKind::kBlockTable,
                                          InputKind::kOutRows, InputKind::kOutPositions, InputKind::kOutRowSeq});
  CHECK(ops(graph, 0).size() == 17);
  CHECK(ops(graph, 1).size() == 19);  // the normed rows and the residual are cut
  CHECK(graph.values[graph.outputs[0]].shape == Shape{50, 2});

  const Node& attention = only(graph, Op::kAttention, 1);
  CHECK(graph.values[attention.inputs[0]].shape == Shape{32, 2});
  CHECK(kind_of(graph, attention.inputs[1]) == InputKind::kOutPositions);
  CHECK(kind_of(graph, attention.inputs[2]) == InputKind::kOutRowSeq);
  const Node& q_rope = graph.nodes[graph.values[attention.inputs[0]].producer];
  CHECK(kind_of(graph, q_rope.inputs[1]) == InputKind::kOutPositions);
  const Node& store = only(graph, Op::kKvStore, 1);
  CHECK(graph.values[store.inputs[0]].shape == Shape{16, 5});
  CHECK(graph.values[store.inputs[1]].shape == Shape{16, 5});
  CHECK(kind_of(graph, store.inputs[2]) == InputKind::kPositions);
  CHECK(kind_of(graph, store.inputs[3]) == InputKind::kRowSeq);
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kGetRows && node.layer == 1) {
      CHECK(kind_of(graph, node.inputs[1]) == InputKind::kOutRows);
    }
  }
  // Nothing in the first layer is cut.
  CHECK(graph.values[only(graph, Op::kAttention, 0).inputs[0]].shape == Shape{32, 5});
}

TEST_CASE("arch/qwen2: nothing is built behind the last KV store where no logits are wanted") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  const Graph graph = build(**model, 4, 0);
  CHECK(graph.outputs.empty());
  CHECK(ops(graph, 1) == std::vector{Op::kRmsNorm, Op::kMatMul, Op::kMatMul, Op::kRope, Op::kKvStore});
  CHECK(graph.nodes.back().op == Op::kKvStore);
  const std::vector<bool> live = graph.live_nodes();
  CHECK(std::count(live.begin(), live.end(), true) == 23);
}

TEST_CASE("arch/qwen2: a tied embedding carries both roles and a separate output its own") {
  const auto tied = open_model(small_model(true));
  const auto untied = open_model(small_model(false));
  REQUIRE(tied.ok());
  REQUIRE(untied.ok());
  CHECK((*tied)->weights()[0].roles == (kRoleEmbedding | kRoleOutput | kRoleMatrix));
  CHECK((*untied)->weights()[0].roles == kRoleEmbedding);
  CHECK((*untied)->weights().back().name == "output.weight");
  CHECK((*untied)->weights().back().roles == (kRoleOutput | kRoleMatrix));
  const auto head = [](const Graph& graph) { return graph.values[graph.nodes.back().inputs[1]].index; };
  CHECK(head(build(**tied, 1, 1)) == 0);
  CHECK(head(build(**untied, 1, 1)) == 26);
}

TEST_CASE("arch/qwen2: equal parameters give equal graphs") {
  const auto model = open_model(small_model());
  REQUIRE(model.ok());
  const Graph a = build(**model, 5, 2), b = build(**model, 5, 2);
  CHECK(a.nodes == b.nodes);
  CHECK(a.values == b.values);
  CHECK(a.values != build(**model, 5, 3).values);
}

TEST_CASE("arch/qwen2: a bad hyper-parameter is refused with its key and value") {
  using Value = FakeMetadata::Value;
  struct Case {
    const char* key;
    Value value;
    const char* words;
  };
  const Case cases[] = {
      {"attention.head_count", uint64_t{0}, "is 0"},
      {"attention.head_count", uint64_t{3}, "is not divisible by"},
      {"attention.head_count", uint64_t{7}, "7"},
      {"attention.head_count", uint64_t{0xffffffff}, "4294967295"},
      {"attention.head_count", uint64_t{1} << 40, "1099511627776"},
      {"attention.head_count", 4.0, "whole number"},
      {"attention.head_count", uint64_t{32}, "is 32 with heads of 1"},
      {"attention.head_count_kv", uint64_t{0}, "is 0"},
      {"attention.head_count_kv", uint64_t{3}, "is not divisible by"},
      {"attention.head_count_kv", uint64_t{8}, "is not divisible by"},
      {"attention.layer_norm_rms_epsilon", kNan, "nan"},
      {"attention.layer_norm_rms_epsilon", -1e-6, "-1e-06"},
      {"attention.layer_norm_rms_epsilon", 0.0, "is 0"},
      {"attention.layer_norm_rms_epsilon", 1e-60, "above 0"},  // 0 as f32
      {"attention.layer_norm_rms_epsilon", std::string("1e-6"), "number"},
      {"rope.freq_base", 0.0, "is 0"},
      {"rope.freq_base", HUGE_VAL, "inf"},
      {"rope.dimension_count", uint64_t{7}, "is 7: must equal the head size 8"},
      {"rope.dimension_count", uint64_t{16}, "is 16: must equal the head size 8"},
      {"rope.scaling.factor", 4.0, "is 4: only 1"},  // of which kind?
      {"rope.scale_linear", 0.0, "is 0"},
      {"attention.sliding_window", uint64_t{4096}, "is 4096: not supported"},
      {"attention.key_length", uint64_t{16}, "must equal the head size 8"},
      {"block_count", uint64_t{0}, "is 0"},
      {"block_count", uint64_t{3}, "is 3, but the file has no blk.2.attn_norm.weight"},
      {"block_count", uint64_t{0x7fffffff}, "is 2147483647, but the file has no blk.2."},
      {"block_count", uint64_t{0xffffffff}, "4294967295"},
      {"block_count", std::string("2"), "whole number"},
      {"embedding_length", uint64_t{0}, "is 0"},
      {"embedding_length", uint64_t{64}, "is 64, but token_embd.weight"},
      {"feed_forward_length", uint64_t{0}, "is 0"},
      {"context_length", uint64_t{0}, "is 0"},
      {"vocab_size", uint64_t{49}, "is 49, but token_embd.weight has 50 rows"},
  };
  for (const Case& c : cases) {
    FakeMetadata metadata = small_model();
    const std::string key = std::string("qwen2.") + c.key;
    metadata.values[key] = c.value;
    const auto model = open_model(metadata);
    INFO(key << " expects: " << c.words);
    REQUIRE_FALSE(model.ok());
    INFO(model.error().text);
    CHECK_THAT(model.error().text, Contains("architecture qwen2: ") && Contains(key) && Contains(c.words));
  }
}

TEST_CASE("arch/qwen2: a missing key is refused by name and those with a default are not") {
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
                          "attention.layer_norm_rms_epsilon"}) {
    FakeMetadata metadata = small_model();
    metadata.values.erase(std::string("qwen2.") + key);
    const auto model = open_model(metadata);
    INFO(key);
    REQUIRE_FALSE(model.ok());
    CHECK_THAT(model.error().text, Contains(std::string("qwen2.") + key + " is missing"));
  }
  FakeMetadata defaults = small_model();
  defaults.values.erase("qwen2.rope.freq_base");
  defaults.values["qwen2.rope.scaling.type"] = std::string("none");
  defaults.values["qwen2.vocab_size"] = uint64_t{50};
  CHECK(open_model(defaults).ok());
}

TEST_CASE("arch/qwen2: a tensor that is missing or of another shape is refused with both shapes") {
  FakeMetadata metadata = small_model();
  metadata.tensors.erase("blk.1.attn_k.bias");
  const auto missing = open_model(metadata);
  REQUIRE_FALSE(missing.ok());
  CHECK_THAT(missing.error().text, Contains("blk.1.attn_k.bias is missing") && Contains("[16]"));

  metadata = small_model();
  metadata.tensors["blk.0.ffn_down.weight"].shape = Shape{32, 64};
  const auto transposed = open_model(metadata);
  REQUIRE_FALSE(transposed.ok());
  CHECK_THAT(transposed.error().text, Contains("blk.0.ffn_down.weight") && Contains("[32, 64]") && Contains("[64, 32]"));
}

TEST_CASE("arch/qwen2: another architecture is not taken for qwen2") {
  FakeMetadata metadata = small_model();
  metadata.values["general.architecture"] = std::string("frobnicate");
  const auto model = open_model(metadata);
  REQUIRE_FALSE(model.ok());
  CHECK_THAT(model.error().text, Contains("'frobnicate'") && Contains("qwen2"));
}
