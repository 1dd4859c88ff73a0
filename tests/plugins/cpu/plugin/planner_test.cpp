// The planner on a whole toy model: how many barriers a step has, and that grouping nodes never changes a bit.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <thread>

#include "cpu_engine_device.hpp"
#include "engine/session.hpp"
#include "support/toy_architecture.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

// A toy of f32 weights, or of Q8_0 ones, on the cpu device.
struct CpuToy {
  CpuToy(unsigned threads, ToyOptions options, bool quantised = false) : architecture(options, quantised), device(threads) {
    std::vector<Device*> devices{&device};
    auto placement = place_model(architecture, devices, {}, {}, toy_cparams());
    if (!placement.ok()) FAIL(placement.error().text);
    auto loaded = LoadedModel::load(architecture, devices, std::move(*placement), architecture.data(), {});
    if (!loaded.ok()) FAIL(loaded.error().text);
    model = std::move(*loaded);
  }
  std::unique_ptr<Session> session(CParams cparams = toy_cparams()) {
    auto made = Session::create(*model, cparams);
    if (!made.ok()) FAIL(made.error().text);
    return std::move(*made);
  }

  // The toy with its matrices quantised: blocks of 32 values as f16 scale and 32 bytes (Q8_0 of GGUF). The scale is a power of two, so
  // that its f16 bits are easily written.
  class Quantised final : public ModelArchitecture {
   public:
    Quantised(const ToyOptions& options, bool quantised) : toy_(options), infos_(toy_.weights()) {
      const auto source = toy_.weight_data();
      for (size_t id = 0; id < infos_.size(); ++id) {
        data_.emplace_back(source[id].begin(), source[id].end());
        if (quantised && (infos_[id].roles & kRoleMatrix)) quantise(id);
      }
    }
    const ModelInfo& info() const override { return toy_.info(); }
    const std::vector<WeightInfo>& weights() const override { return infos_; }
    Status build(const GraphParams& params, GraphBuilder& builder) override { return toy_.build(params, builder); }
    std::vector<std::span<const std::byte>> data() const { return {data_.begin(), data_.end()}; }

   private:
    void quantise(size_t id) {
      std::vector<float> values(data_[id].size() / sizeof(float));
      std::memcpy(values.data(), data_[id].data(), data_[id].size());
      std::vector<std::byte> blocks;
      for (size_t begin = 0; begin < values.size(); begin += 32) {
        blocks.push_back(std::byte{0x00});
        blocks.push_back(std::byte{0x24});  // f16 2^-6
        for (size_t i = begin; i < begin + 32; ++i) blocks.push_back(static_cast<std::byte>(static_cast<int8_t>(values[i] * 64)));
      }
      data_[id] = std::move(blocks);
      infos_[id].dtype = DType::kQ8_0;
    }
    ToyArchitecture toy_;
    std::vector<WeightInfo> infos_;
    std::vector<std::vector<std::byte>> data_;
  };

  Quantised architecture;
  CpuEngineDevice device;
  std::unique_ptr<LoadedModel> model;
};

ToyOptions toy(uint32_t n_layers = 3, uint32_t n_head_kv = 2) {
  ToyOptions options;
  options.n_layers = n_layers;
  options.n_embd = 64;
  options.n_head = 4;
  options.n_head_kv = n_head_kv;
  options.head_dim = 16;
  options.n_ff = 96;
  return options;
}

std::vector<float> forward(Session& session, const std::vector<SeqChunk>& chunks) {
  const auto logits = session.forward(chunks);
  if (!logits.ok()) FAIL(logits.error().text);
  return {logits->values.begin(), logits->values.end()};
}
std::vector<float> forward(Session& session, std::span<const int32_t> tokens, uint32_t n_out) {
  return forward(session, {{0, tokens, n_out}});
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Barriers of the one plan of a step of n tokens.
uint32_t barriers(unsigned threads, const ToyOptions& options, uint32_t n_tokens, CParams cparams = toy_cparams(), bool quantised = false) {
  CpuToy model(threads, options, quantised);
  forward(*model.session(cparams), toy_tokens(n_tokens), n_tokens);
  REQUIRE(model.device.barriers.size() == 1);
  return model.device.barriers[0];
}

}  // namespace

TEST_CASE("cpu/planner: a decode layer has four barriers where the KV heads divide over the threads") {
  // In each layer behind attention, its output product, the feed-forward and the product behind that. Around the layers two more: behind
  // the embedding, and behind the last norm, which is not left to the output product because the logits lie over what it reads.
  for (const bool quantised : {false, true})
    for (const uint32_t layers : {1u, 3u}) {
      CHECK(barriers(1, toy(layers), 1, toy_cparams(), quantised) == 2 + 4 * layers);
      CHECK(barriers(2, toy(layers), 1, toy_cparams(), quantised) == 2 + 4 * layers);
      CHECK(barriers(4, toy(layers, 4), 1, toy_cparams(), quantised) == 2 + 4 * layers);
      CHECK(barriers(2, toy(layers, 4), 4, toy_cparams(), quantised) == 2 + 4 * layers);  // few rows are like one
      // With heads left over a thread needs another's K and V: one more, behind the projection.
      CHECK(barriers(3, toy(layers), 1, toy_cparams(), quantised) == 2 + 5 * layers);
      CHECK(barriers(2, toy(layers, 1), 1, toy_cparams(), quantised) == 2 + 5 * layers);
      CHECK(barriers(8, toy(layers, 4), 1, toy_cparams(), quantised) == 2 + 5 * layers);
    }
}

TEST_CASE("cpu/planner: barriers per layer are counted, four for the heads of the default model on two threads") {
  // 14 heads of 64 over 2 KV heads, as Qwen2.5-0.5B; fewer layers and a narrower feed-forward, which have no part in it.
  ToyOptions options = toy(2);
  options.n_embd = 896;
  options.n_head = 14;
  options.head_dim = 64;
  CpuToy model(2, options, true);
  const auto session = model.session();
  forward(*session, toy_tokens(8), 1);
  forward(*session, toy_tokens(1), 1);
  REQUIRE(model.device.layer_barriers.size() == 2);
  CHECK(model.device.layer_barriers[0].first > 2 * 4);
  CHECK(model.device.layer_barriers[0].second == 2);
  CHECK(model.device.layer_barriers[1] == std::pair(2u * 4u, 2u));
}

TEST_CASE("cpu/planner: many rows and graphs that are not fused have more barriers") {
  const uint32_t decode = barriers(2, toy(), 1);
  // From five rows on, the left side of products is prepared once for all threads: the norms before QKV and feed-forward; and K and V
  // of other heads are needed.
  CHECK(barriers(2, toy(), 5) == decode + 3 * (1 + 2));
  // 8-bit activations of attention's output and before the logits are prepared apart too.
  CHECK(barriers(2, toy(), 5, toy_cparams(), true) == decode + 3 * (1 + 2 + 1) + 1);
  CParams plain = toy_cparams();
  plain.fuse_qkv = false;
  CHECK(barriers(2, toy(), 1, plain) > decode);
  plain.fuse_ffn = false;
  CHECK(barriers(2, toy(), 1, plain) > barriers(2, toy(), 1, [] {
          CParams only = toy_cparams();
          only.fuse_ffn = false;
          return only;
        }()));
}

TEST_CASE("cpu/planner: norms done by the products behind them and sums folded into them keep every bit") {
  for (const bool quantised : {false, true})
    for (const unsigned threads : {1u, 2u, 3u}) {
      CpuToy model(threads, toy(), quantised);
      const auto tokens = toy_tokens(30);
      const auto grouped = model.session();
      CParams observed_params = toy_cparams();
      observed_params.observe = true;
      const auto observed = model.session(observed_params);
      CParams plain = toy_cparams();
      plain.fuse_qkv = plain.fuse_ffn = false;
      const auto unfused = model.session(plain);
      size_t at = 0;
      for (const size_t n : {17u, 1u, 5u, 1u, 4u, 2u}) {
        const auto part = std::span(tokens).subspan(at, n);
        at += n;
        const auto n_out = static_cast<uint32_t>(n);
        INFO("threads " << threads << " quantised " << quantised << " rows " << n);
        model.device.phase_counts.clear();
        const std::vector<float> expected = forward(*grouped, part, n_out);
        const size_t phases = model.device.phase_counts.empty() ? 0 : model.device.phase_counts[0];
        model.device.phase_counts.clear();
        CHECK(same_bits(forward(*observed, part, n_out), expected));
        // The path was taken: alone, every node is a phase at least; together, norms and sums are none of their own.
        if (phases) {
          CHECK(model.device.phase_counts.size() == observed->last_graph()->graph.nodes.size());
          CHECK(phases < observed->last_graph()->graph.nodes.size());
        }
        CHECK(same_bits(forward(*unfused, part, n_out), expected));
      }
    }
}

TEST_CASE("cpu/planner: rows cut to those whose logits are wanted are the rows of the whole batch") {
  for (const uint32_t window : {0u, 3u}) {
    ToyOptions options = toy();
    options.window = window;
    CpuToy model(2, options);
    const auto a = toy_tokens(12, 1), b = toy_tokens(9, 2);
    CParams two = toy_cparams(256, 2);
    const auto all = model.session(two);
    const auto cut = model.session(two);
    const std::vector<float> whole = forward(*all, {{0, a, 12}, {1, b, 9}});
    const std::vector<float> some = forward(*cut, {{0, a, 2}, {1, b, 3}});
    const size_t n_vocab = 50;
    std::vector<float> expected(whole.begin() + 10 * n_vocab, whole.begin() + 12 * n_vocab);
    expected.insert(expected.end(), whole.begin() + 18 * n_vocab, whole.end());
    CHECK(same_bits(some, expected));
  }
}

TEST_CASE("cpu/planner: views of heads with a norm of their own keep every bit") {
  ToyOptions options = toy();
  options.qk_norm = true;
  const auto tokens = toy_tokens(20);
  std::vector<float> expected;
  for (const unsigned threads : {1u, 3u}) {
    CpuToy model(threads, options);
    for (const bool observe : {false, true}) {
      CParams cparams = toy_cparams();
      cparams.observe = observe;
      const auto session = model.session(cparams);
      forward(*session, std::span(tokens).first(19), 0);
      const std::vector<float> logits = forward(*session, std::span(tokens).last(1), 1);
      if (expected.empty()) expected = logits;
      CHECK(same_bits(logits, expected));
    }
  }
}

TEST_CASE("cpu/planner: sessions on four threads share the device and give the bits of runs one after the other") {
  CpuToy model(2, toy(2), true);
  // A prompt of its own length and tokens behind it, positions taken out in between; empty where a step fails.
  const auto run = [&](uint32_t i) {
    const auto made = Session::create(*model.model, toy_cparams());
    std::vector<float> all;
    if (!made.ok()) return all;
    const auto step = [&](const std::vector<int32_t>& tokens) {
      const SeqChunk chunk{0, tokens, 1};
      const auto logits = (*made)->forward({&chunk, 1});
      if (logits.ok()) all.insert(all.end(), logits->values.begin(), logits->values.end());
      return logits.ok();
    };
    bool good = step(toy_tokens(10 + i, i)) && (*made)->remove(0, 1, 3).ok();
    for (uint32_t n = 0; n < 8 && good; ++n) good = step(toy_tokens(1, i + n));
    return good ? all : std::vector<float>();
  };
  std::vector<std::vector<float>> alone(4), together(4);
  for (uint32_t i = 0; i < 4; ++i) alone[i] = run(i);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { together[i] = run(i); });
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < 4; ++i) CHECK(same_bits(together[i], alone[i]));
}

// A model may be freed and another's factors lie at the same address.
TEST_CASE("cpu/planner: rotation tables are known by their factors and not by where these lie") {
  cpu::RopeTables tables;
  mi_op_attrs attrs{};
  attrs.rope_freq_base = 10000;
  attrs.rope_freq_scale = 1;
  std::vector<float> factors{1, 2};
  const auto angle_of_pair_1 = [&](const float* f) {
    const auto table = tables.get(8, 4, attrs, f);
    return table.sin[1 * 2 + 1];  // position 1; 10000^(-2/4) = 0.01
  };
  CHECK(angle_of_pair_1(factors.data()) == Approx(std::sin(0.005)));
  const std::vector<float> same = factors;
  CHECK(tables.get(8, 4, attrs, same.data()).sin == tables.get(8, 4, attrs, factors.data()).sin);
  factors[1] = 4;
  CHECK(angle_of_pair_1(factors.data()) == Approx(std::sin(0.0025)));
  CHECK(angle_of_pair_1(nullptr) == Approx(std::sin(0.01)));
  CHECK(angle_of_pair_1(same.data()) == Approx(std::sin(0.005)));
}
