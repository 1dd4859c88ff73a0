// How the decoders of the SDK read the scaling of rotary positions, seen through the qwen2 plugin: what graphs get, and refusals.
#include <catch2/catch.hpp>

#include "arch_test.hpp"

using namespace minfer;
using namespace minfer::test;
using Catch::Matchers::Contains;

namespace {

// One layer of two heads of 128, with the base and context of Qwen2.5.
FakeMetadata model_with(const std::map<std::string, FakeMetadata::Value>& scaling) {
  FakeMetadata m;
  m.values = {{"general.architecture", std::string("qwen2")},   {"qwen2.block_count", uint64_t{1}},
              {"qwen2.context_length", uint64_t{32768}},        {"qwen2.embedding_length", uint64_t{256}},
              {"qwen2.feed_forward_length", uint64_t{64}},      {"qwen2.attention.head_count", uint64_t{2}},
              {"qwen2.attention.layer_norm_rms_epsilon", 1e-6}, {"qwen2.rope.freq_base", 1e6}};
  for (const auto& [key, value] : scaling) m.values["qwen2.rope." + key] = value;
  const auto add = [&](const std::string& name, Shape shape) { m.tensors[name] = {DType::kF32, shape}; };
  add("token_embd.weight", {256, 50});
  add("output_norm.weight", {256});
  for (const std::string name : {"attn_norm.weight", "ffn_norm.weight", "attn_q.bias", "attn_k.bias", "attn_v.bias"})
    add("blk.0." + name, {256});
  for (const std::string name : {"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight"}) add("blk.0." + name, {256, 256});
  for (const std::string name : {"ffn_gate.weight", "ffn_up.weight"}) add("blk.0." + name, {256, 64});
  add("blk.0.ffn_down.weight", {64, 256});
  return m;
}

struct Scaling {
  float freq_scale = 0;
  std::vector<float> factors;
  float attn_scale = 0;
};

Scaling scaling_of(const FakeMetadata& metadata) {
  const auto model = open_model(metadata);
  if (!model.ok()) FAIL(model.error().text);
  const Graph graph = build(**model, 2, 2);
  Scaling out;
  out.attn_scale = only(graph, Op::kAttention, 0).attrs.attn_scale;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kRope) continue;
    out.freq_scale = node.attrs.rope_freq_scale;
    if (node.inputs.size() > 2) out.factors = (*model)->weights()[graph.values[node.inputs[2]].index].values;
  }
  return out;
}

const FakeMetadata::Value kYarn = std::string("yarn"), kLinear = std::string("linear");

}  // namespace

TEST_CASE("arch/rope scaling: linear scales all frequencies and nothing else") {
  for (const auto& scaling :
       {std::map<std::string, FakeMetadata::Value>{{"scaling.type", kLinear}, {"scaling.factor", 4.0}}, {{"scale_linear", 4.0}}}) {
    const Scaling found = scaling_of(model_with(scaling));
    CHECK(found.freq_scale == 0.25f);
    CHECK(found.factors.empty());
    CHECK(found.attn_scale == Approx(0.088388348));
  }
  for (const auto& scaling :
       {std::map<std::string, FakeMetadata::Value>{}, {{"scaling.type", std::string("none")}, {"scaling.factor", 4.0}}})
    CHECK(scaling_of(model_with(scaling)).freq_scale == 1);
}

TEST_CASE("arch/rope scaling: YaRN divides slow pairs and lengthens queries and keys") {
  // Divisors and length by transformers' _compute_yarn_parameters.
  std::map<std::string, FakeMetadata::Value> yarn{{"scaling.type", kYarn}, {"scaling.factor", 4.0}};
  const Scaling found = scaling_of(model_with(yarn));
  CHECK(found.freq_scale == 1);
  REQUIRE(found.factors.size() == 64);
  for (size_t i = 0; i < 24; ++i) CHECK(found.factors[i] == 1);
  CHECK(found.factors[24] == Approx(1.04615385));
  CHECK(found.factors[30] == Approx(1.44680851));
  CHECK(found.factors[39] == Approx(3.4));
  for (size_t i = 40; i < 64; ++i) CHECK(found.factors[i] == 4);
  CHECK(found.attn_scale == Approx(0.088388348 * 1.138629436111989 * 1.138629436111989));

  yarn["scaling.original_context_length"] = uint64_t{1024};  // fewer turns: the ramp comes earlier
  yarn["scaling.attn_factor"] = 0.5;
  const Scaling other = scaling_of(model_with(yarn));
  CHECK(other.factors[23] > 1);
  CHECK(other.attn_scale == Approx(0.25 * found.attn_scale));
  // Equal files give equal graphs and constants.
  CHECK(scaling_of(model_with(yarn)).factors == other.factors);
}

TEST_CASE("arch/rope scaling: divisors of the file are taken by every decoder and not beside those of YaRN") {
  FakeMetadata metadata = model_with({});
  metadata.tensors["rope_freqs.weight"] = {DType::kF32, Shape{64}};
  const auto model = open_model(metadata);
  REQUIRE(model.ok());
  const Graph graph = build(**model, 1, 1);
  size_t rotations = 0;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kRope) continue;
    ++rotations;
    REQUIRE(node.inputs.size() == 3);
    const WeightInfo& info = (*model)->weights()[graph.values[node.inputs[2]].index];
    CHECK(info.name == "rope_freqs.weight");
    CHECK(info.values.empty());  // the file holds them
  }
  CHECK(rotations == 2);
  metadata.values["qwen2.rope.scaling.type"] = kYarn;
  metadata.values["qwen2.rope.scaling.factor"] = 2.0;
  const auto both = open_model(metadata);
  REQUIRE_FALSE(both.ok());
  CHECK_THAT(both.error().text, Contains("rope_freqs.weight") && Contains("'yarn'"));
}

TEST_CASE("arch/rope scaling: what is not implemented or makes no sense is refused by its key") {
  const FakeMetadata::Value longrope = std::string("longrope"), dynamic = std::string("dynamic"), text = std::string("4");
  struct Case {
    std::map<std::string, FakeMetadata::Value> scaling;
    const char* words;
  };
  const Case cases[] = {
      {{{"scaling.type", longrope}, {"scaling.factor", 4.0}}, "rope.scaling.type is 'longrope': known are 'none', 'linear' and 'yarn'"},
      {{{"scaling.type", dynamic}}, "rope.scaling.type is 'dynamic'"},
      {{{"scaling.type", std::string()}, {"scaling.factor", 4.0}}, "rope.scaling.factor is 4"},
      {{{"scaling.type", kLinear}}, "rope.scaling.factor is missing"},
      {{{"scaling.type", kLinear}, {"scaling.factor", 0.0}}, "rope.scaling.factor is 0"},
      {{{"scaling.type", kLinear}, {"scaling.factor", text}}, "rope.scaling.factor is not a number"},
      {{{"scaling.type", kLinear}, {"scaling.factor", 4.0}, {"scaling.attn_factor", 2.0}}, "rope.scaling.attn_factor is 2: only 1"},
      {{{"scaling.type", kYarn}}, "rope.scaling.factor is missing"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 0.5}}, "rope.scaling.factor is 0.5: YaRN takes 1 or more"},
      {{{"scaling.type", kYarn}, {"scaling.factor", HUGE_VAL}}, "rope.scaling.factor is inf"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 4.0}, {"scaling.yarn_log_multiplier", 0.1}}, "yarn_log_multiplier is 0.1: only 0"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 4.0}, {"scaling.yarn_ext_factor", 0.0}}, "yarn_ext_factor is 0: only 1"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 4.0}, {"scaling.yarn_attn_factor", 2.0}}, "yarn_attn_factor is 2: only 1"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 4.0}, {"scaling.yarn_beta_fast", -1.0}}, "yarn_beta_fast is -1"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 4.0}, {"scaling.yarn_beta_slow", 64.0}}, "so YaRN has no ramp"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 4.0}, {"scaling.original_context_length", uint64_t{0}}},
       "original_context_length is 0"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 4.0}, {"scaling.original_context_length", uint64_t{1}}}, "so YaRN has no ramp"},
      {{{"scaling.type", kYarn}, {"scaling.factor", 4.0}, {"freq_base", 1.0}}, "rope.freq_base is 1: YaRN takes more than 1"},
  };
  for (const Case& c : cases) {
    const auto model = open_model(model_with(c.scaling));
    INFO("expects: " << c.words);
    REQUIRE_FALSE(model.ok());
    INFO(model.error().text);
    CHECK_THAT(model.error().text, Contains("architecture qwen2: qwen2.") && Contains(c.words));
  }
}
