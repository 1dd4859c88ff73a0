// Logits do not depend on circumstances: how the prompt was cut, how many threads, which instruction set, fused or not, observed or
// not, reused or rebuilt. Compared bit for bit on the real model; each case first shows that its path was taken.
#include <catch2/catch.hpp>
#include <cstring>

#include "golden.hpp"
#include "runtime/generate.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

#ifdef MINFER_TEST_QWEN2
namespace {

constexpr uint32_t kTokens = 600;
constexpr uint32_t kEvery = 64;

std::vector<int32_t> long_prompt() {
  for (const PromptReference& prompt : prompt_references("logits_qwen2"))
    if (prompt.ids.size() >= kTokens) return {prompt.ids.begin(), prompt.ids.begin() + kTokens};
  FAIL("no prompt of that length");
  return {};
}

// FNV-1a over the bits of the last row and of every 64th row of the prompt, in order. Rows are read chunk by chunk.
class RowHashes {
 public:
  void add(uint32_t position, std::span<const float> row) {
    if (position % kEvery != 0 && position != kTokens - 1) return;
    uint64_t hash = 14695981039346656037u;
    for (const float value : row) {
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      hash = (hash ^ bits) * 1099511628211u;
    }
    hashes_.emplace_back(position, hash);
  }
  friend bool operator==(const RowHashes&, const RowHashes&) = default;
  size_t size() const { return hashes_.size(); }

 private:
  std::vector<std::pair<uint32_t, uint64_t>> hashes_;
};

// Every row of the prompt is asked for, in chunks of n_batch.
RowHashes hash_prompt(Session& session, const std::vector<int32_t>& tokens, uint32_t n_batch) {
  RowHashes hashes;
  for (uint32_t begin = 0; begin < tokens.size(); begin += n_batch) {
    const auto end = std::min<uint32_t>(begin + n_batch, static_cast<uint32_t>(tokens.size()));
    const SeqChunk chunk{0, std::span(tokens).subspan(begin, end - begin), end - begin};
    const auto logits = session.forward({&chunk, 1});
    if (!logits.ok()) FAIL(logits.error().text);
    for (uint32_t i = 0; i < logits->n_rows; ++i) hashes.add(begin + i, logits->row(i));
  }
  return hashes;
}

// The last row of every chunk of 64 and the last row of all.
std::vector<std::vector<float>> every_64th_row(const ModelOnCpu& model, const std::vector<int32_t>& tokens) {
  const auto session = model.session(kTokens);
  std::vector<std::vector<float>> rows;
  for (size_t begin = 0; begin < tokens.size(); begin += kEvery) {
    const size_t n = std::min<size_t>(kEvery, tokens.size() - begin);
    rows.push_back(run_tokens(*session, {tokens.begin() + begin, tokens.begin() + begin + n}, 1));
  }
  return rows;
}

}  // namespace

TEST_CASE("golden/same bits: chunk size and thread count do not change a logit", "[golden]") {
  const std::vector<int32_t> tokens = long_prompt();
  RowHashes expected;
  for (unsigned threads : {2u, 1u, 3u}) {
    const ModelOnCpu model(model_file(kQwen2Model), {threads, "auto", KvFormat::kF16});
    REQUIRE(model->engine().devices()[0]->info().description.find(std::to_string(threads) + " thread") == 0);
    for (uint32_t n_batch : {512u, 1u, 7u, 64u, 511u}) {
      const auto session = model.session(1024);
      const RowHashes found = hash_prompt(*session, tokens, n_batch);
      REQUIRE(found.size() == 11);
      if (expected.size() == 0) expected = found;
      INFO("threads " << threads << " chunk " << n_batch);
      CHECK(found == expected);
      // One build per distinct chunk length, reuse for the rest.
      CHECK(session->stats().builds == (kTokens % n_batch && kTokens > n_batch ? 2 : 1));
      if (n_batch == 1) CHECK(session->stats().reuses == kTokens - 1);
    }
  }
}

TEST_CASE("golden/same bits: baseline kernels give what the fast ones give", "[golden]") {
  const std::vector<int32_t> tokens = long_prompt();
  const ModelOnCpu fast(model_file(kQwen2Model), {2, "auto", KvFormat::kF16});
  const std::string kernels = fast->engine().devices()[0]->info().description;
  if (kernels.find("baseline") != std::string::npos) skip("this machine has the baseline only");
  REQUIRE((kernels.find("avx2") != std::string::npos || kernels.find("avx512") != std::string::npos));
  const ModelOnCpu slow(model_file(kQwen2Model), {2, "baseline", KvFormat::kF16});
  REQUIRE(slow->engine().devices()[0]->info().description.find("baseline") != std::string::npos);
  const auto expected = every_64th_row(fast, tokens), found = every_64th_row(slow, tokens);
  REQUIRE(expected.size() == 10);
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("row " << std::min<size_t>(kEvery * (i + 1), kTokens) - 1);
    REQUIRE(expected[i].size() == fast->info().n_vocab);
    REQUIRE(found[i].size() == expected[i].size());
    CHECK(std::memcmp(found[i].data(), expected[i].data(), found[i].size() * sizeof(float)) == 0);
  }
}

TEST_CASE("golden/same bits: fused, unfused and observed graphs give the same logits", "[golden]") {
  std::vector<int32_t> tokens = long_prompt();
  tokens.resize(100);
  const ModelOnCpu model(model_file(kQwen2Model));
  const auto fused = model.session(256);
  CParams plain;
  plain.fuse_qkv = plain.fuse_ffn = false;
  const auto unfused = model.session(256, plain);
  CParams watched;
  watched.observe = true;
  const auto observed = model.session(256, watched);
  uint64_t seen = 0;
  observed->set_observer([&](const Graph&, NodeId, std::span<const float>) { ++seen; });
  for (uint32_t n_batch : {100u, 33u, 1u}) {
    for (auto* session : {fused.get(), unfused.get(), observed.get()}) REQUIRE(session->rollback(0, 0).ok());
    const std::vector<float> expected = run_tokens(*fused, tokens, 1, n_batch);
    CHECK(fused->last_graph()->n_fused >= 24);
    CHECK(run_tokens(*unfused, tokens, 1, n_batch) == expected);
    CHECK(unfused->last_graph()->n_fused == 24);  // Silu and Mul alone: that rewrite has no flag
    CHECK(run_tokens(*observed, tokens, 1, n_batch) == expected);
    CHECK(observed->last_graph()->splits.size() == observed->last_graph()->graph.nodes.size());
  }
  CHECK(seen > 0);
}

TEST_CASE("golden/same bits: a rebuilt graph and a reused one give the same logits", "[golden]") {
  std::vector<int32_t> tokens = long_prompt();
  tokens.resize(40);
  const ModelOnCpu model(model_file(kQwen2Model));
  const auto reusing = model.session(128);
  auto rebuilding = Session::create(model->engine(), reusing->cparams(), 1);  // room for one graph: alternating shapes always miss
  REQUIRE(rebuilding.ok());
  for (uint32_t round = 0; round < 3; ++round) {
    for (auto* session : {reusing.get(), rebuilding->get()}) REQUIRE(session->rollback(0, 0).ok());
    const std::vector<float> expected = run_tokens(*reusing, tokens, 2, 39);
    CHECK(run_tokens(**rebuilding, tokens, 2, 39) == expected);
  }
  CHECK(reusing->stats().builds == 2);
  CHECK(reusing->stats().reuses == 4);
  CHECK((*rebuilding)->stats().builds == 6);
}

TEST_CASE("golden/same bits: a second process gives the same text", "[golden]") {
  const std::string file = model_file(kQwen2Model).string();
  const std::vector<std::string> argv = {
      (build_dir() / "bin/minfer-run").string(), "-m", file, "-n", "24", "--seed", "7", "-q", "Tell me a story"};
  const ProcessResult first = run_process(argv), second = run_process(argv);
  REQUIRE(first.exit_code == 0);
  CHECK(first.out.size() > 20);
  CHECK(first.out == second.out);
}
#endif
