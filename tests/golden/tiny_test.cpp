// Every tiny model against its float64 reference. Their shapes are awkward on purpose (widths that are no multiple of 64, several
// GQA ratios), and the F32 ones see faults that real quantised models hide.
#include <algorithm>
#include <catch2/catch.hpp>

#include "golden.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

void check_tiny_models(const std::string& architecture, size_t expected_files) {
  const std::vector<TinyCase> cases = tiny_cases(architecture);
  REQUIRE(cases.size() == expected_files);
  for (const TinyCase& tiny : cases) {
    const std::vector<TinySequence> reference = tiny_reference(tiny);
    const Difference limit = tiny_limits(tiny);
    for (const char* isa : {"baseline", "auto"}) {
      const ModelOnCpu model(data_dir() / "tiny" / tiny.file, {2, isa, KvFormat::kF32});
      const Difference found = difference_from_reference(model, reference);
      INFO(tiny.file << " isa " << isa << " rms " << found.rms << " of " << limit.rms << ", max " << found.max << " of " << limit.max);
      CHECK(found.rms <= limit.rms);
      CHECK(found.max <= limit.max);
    }
  }
}

}  // namespace

#ifdef MINFER_TEST_QWEN2
TEST_CASE("golden/tiny: every qwen2 model is within its limit of the float64 reference", "[golden]") { check_tiny_models("qwen2", 30); }
#endif
#ifdef MINFER_TEST_LLAMA
TEST_CASE("golden/tiny: every llama model is within its limit of the float64 reference", "[golden]") { check_tiny_models("llama", 30); }
#endif
#ifdef MINFER_TEST_QWEN3
TEST_CASE("golden/tiny: every qwen3 model is within its limit of the float64 reference", "[golden]") { check_tiny_models("qwen3", 14); }

// Norms between products and rotations keep the projections apart, so only the feed-forward part is fused.
TEST_CASE("golden/tiny: fused, unfused and observed graphs of a model with norms per head give the same logits", "[golden]") {
  for (const char* file : {"qwen3_F32.gguf", "qwen3_MIXED.gguf"}) {
    const ModelOnCpu model(data_dir() / "tiny" / file);
    const uint32_t n_layers = model->info().n_layers;
    CParams plain, watched;
    plain.fuse_qkv = plain.fuse_ffn = false;
    watched.observe = true;
    const auto fused = model.session(256), unfused = model.session(256, plain), observed = model.session(256, watched);
    uint64_t seen = 0;
    observed->set_observer([&](const Graph&, NodeId, std::span<const float>) { ++seen; });
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 100; ++i) tokens.push_back((i * i * 7 + i * 31) % 300);
    std::vector<float> expected;
    for (uint32_t n_batch : {100u, 33u, 1u}) {
      for (auto* session : {fused.get(), unfused.get(), observed.get()}) REQUIRE(session->rollback(0, 0).ok());
      const std::vector<float> logits = run_tokens(*fused, tokens, 100, n_batch);
      if (expected.empty()) expected = logits;
      INFO(file << " chunk " << n_batch);
      CHECK(logits == expected);
      CHECK(run_tokens(*unfused, tokens, 100, n_batch) == expected);
      CHECK(run_tokens(*observed, tokens, 100, n_batch) == expected);
      const auto count = [](const Session& session, Op op) {
        const auto& nodes = session.last_graph()->graph.nodes;
        return std::count_if(nodes.begin(), nodes.end(), [op](const Node& node) { return node.op == op; });
      };
      CHECK(count(*fused, Op::kFusedFfn) == n_layers);
      CHECK(count(*fused, Op::kFusedQkv) == 0);
      CHECK(count(*unfused, Op::kFusedFfn) == 0);
      CHECK(count(*unfused, Op::kRmsNorm) == 4 * n_layers + 1);
    }
    CHECK(seen > 0);
  }
}
#endif
