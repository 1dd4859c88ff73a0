// What goes wrong on the device is one clear error with layer and row, and the next run works.
#include <cmath>
#include <limits>

#include "opencl_run.hpp"
#include "support/device_graph.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

constexpr uint32_t kHeadDim = 16;
constexpr uint32_t kVocab = 40;

// The device itself, opened through the plugin.
class Opened {
 public:
  Opened() : registry_(build_tree_plugins()) {
    auto opened = registry_->open_backend(opencl().request);
    if (!opened.ok()) FAIL(opened.error().text);
    backend_ = std::move(*opened);
  }
  Device& device() { return *backend_->devices()[0]; }

 private:
  std::unique_ptr<plugin::Registry> registry_;
  std::unique_ptr<plugin::OpenedBackend> backend_;
};

CParams params(uint32_t n_ctx, KvFormat format = KvFormat::kF32) {
  CParams cparams;
  cparams.n_ctx = n_ctx;
  cparams.max_seqs = 2;
  cparams.kv_format = format;
  return cparams;
}

std::vector<float> table(float salt, uint32_t width = kHeadDim) {
  std::vector<float> values;
  for (uint32_t i = 0; i < kVocab * width; ++i) values.push_back(std::sin(static_cast<float>(i) * 0.37f + salt));
  return values;
}

// Token i looks up K, V and Q in tables and is stored at position i of sequence 0, in layer 2, whose block is 1.
struct StoreGraph : DeviceGraph {
  StoreGraph(Device& device, uint32_t n_tokens, const CParams& cparams, const std::vector<float>& k_table,
             const std::vector<float>& v_table)
      : DeviceGraph(device, n_tokens, cparams) {
    const uint32_t wk = add_weight(kRoleEmbedding, {kHeadDim, kVocab}, k_table);
    const uint32_t wv = add_weight(kRoleEmbedding, {kHeadDim, kVocab}, v_table);
    const ValueId ids = g().input(InputKind::kTokenIds), positions = g().input(InputKind::kPositions);
    const ValueId row_seq = g().input(InputKind::kRowSeq), blocks = g().input(InputKind::kBlockTable);
    g().layer = 2;
    const ValueId k = g().get_rows(g().weight(wk), ids), v = g().get_rows(g().weight(wv), ids);
    g().kv_store(k, v, positions, row_seq, blocks, 1, kHeadDim);
    out = g().attention(k, positions, row_seq, blocks, 1, 1, kHeadDim, 0.25f);
    prepare({out});
    for (uint32_t i = 0; i < n_tokens; ++i) {
      input(InputKind::kTokenIds).push_back(static_cast<int32_t>(i % kVocab));
      input(InputKind::kPositions).push_back(static_cast<int32_t>(i));
      input(InputKind::kRowSeq).push_back(0);
    }
    input(InputKind::kBlockTable)[0] = 1;
  }
  std::string refusal() {
    const Status status = run();
    if (status.ok()) return "it was not refused";
    CHECK(status.error().code == ErrorCode::kInvalidArgument);
    return status.error().text;
  }
  ValueId out = kNone;
};

std::vector<std::byte> bytes_of(Buffer& buffer) {
  std::vector<std::byte> bytes(buffer.size_bytes());
  REQUIRE(buffer.read(0, bytes.data(), bytes.size()).ok());
  return bytes;
}

}  // namespace

TEST_CASE("opencl/failures: a row that points outside its context or sequences or blocks is refused and nothing is stored") {
  Opened opened;
  StoreGraph graph(opened.device(), 3, params(100), table(1), table(2));
  const std::vector<std::byte> before = bytes_of(graph.k());
  int32_t& token = graph.input(InputKind::kTokenIds)[2];
  int32_t& position = graph.input(InputKind::kPositions)[2];
  int32_t& seq = graph.input(InputKind::kRowSeq)[2];
  position = 100;  // blocks reach to 127, the context does not
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: position 100 is outside the context of 100"));
  position = -1;
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: position -1 is outside the context"));
  position = 70;
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: no KV block holds position 64 of sequence 0"));
  graph.input(InputKind::kBlockTable)[1] = 2;  // the regions have two blocks
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: no KV block holds position 64"));
  position = 2;
  seq = 2;
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: sequence 2 does not exist"));
  seq = 1;
  CHECK_THAT(graph.refusal(), Catch::Contains("no KV block holds position 0 of sequence 1"));
  seq = 0;
  token = static_cast<int32_t>(kVocab);
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: token id 40 is outside 40"));
  token = -1;
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: token id -1"));
  CHECK(bytes_of(graph.k()) == before);
  token = 2;
  CHECK(graph.run().ok());
  CHECK(bytes_of(graph.k()) != before);
  const std::vector<std::byte> stored = bytes_of(graph.k());
  std::fill(graph.input(InputKind::kRowSeq).begin(), graph.input(InputKind::kRowSeq).end(), -1);  // padding alone
  graph.input(InputKind::kTokenIds).assign(3, 9);
  CHECK(graph.run().ok());
  CHECK(bytes_of(graph.k()) == stored);
}

TEST_CASE("opencl/failures: a K or V that the format cannot hold or that is not finite is refused with layer and row") {
  Opened opened;
  for (const bool in_v : {false, true}) {
    std::vector<float> k = table(1), v = table(2);
    (in_v ? v : k)[5 * kHeadDim + 3] = 70000.0f;
    StoreGraph f16(opened.device(), 8, params(128, KvFormat::kF16), k, v);
    CHECK_THAT(f16.refusal(), Catch::Contains("beyond what the KV format holds") && Catch::Contains("(layer 2, row 5)"));
    f16.input(InputKind::kTokenIds)[5] = 6;
    CHECK(f16.run().ok());
    StoreGraph f32(opened.device(), 8, params(128), k, v);
    CHECK(f32.run().ok());
    (in_v ? v : k)[5 * kHeadDim + 3] = std::numeric_limits<float>::infinity();
    StoreGraph infinite(opened.device(), 8, params(128), k, v);
    CHECK_THAT(infinite.refusal(), Catch::Contains("not finite") && Catch::Contains("(layer 2, row 5)"));
  }
}

TEST_CASE("opencl/failures: an activation that is not finite is refused with layer and row") {
  Opened opened;
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const uint32_t n_tokens : {1u, 12u}) {
      DeviceGraph graph(opened.device(), n_tokens, params(128));
      std::vector<float> embedding = table(1, 32);
      embedding[9 * 32 + 31] = bad;  // token 9
      const uint32_t embed = graph.add_weight(kRoleEmbedding, {32, kVocab}, embedding);
      std::vector<std::byte> blocks(64 * 34, std::byte{1});  // Q8_0: 64 rows of one block, f16 scale 1 and 32 ones
      for (size_t row = 0; row < 64; ++row) {
        blocks[row * 34] = std::byte{0};
        blocks[row * 34 + 1] = std::byte{0x3c};
      }
      const uint32_t matrix = graph.add_weight(kRoleMatrix, {32, 64}, DType::kQ8_0, blocks);
      graph.g().layer = 3;
      const ValueId x = graph.g().get_rows(graph.g().weight(embed), graph.g().input(InputKind::kTokenIds));
      graph.prepare({graph.g().matmul(x, graph.g().weight(matrix))});
      graph.input(InputKind::kTokenIds).assign(n_tokens, 4);
      REQUIRE(graph.run().ok());
      graph.input(InputKind::kTokenIds).back() = 9;
      const Status status = graph.run();
      REQUIRE_FALSE(status.ok());
      CHECK_THAT(status.error().text, Catch::Contains("an activation is not finite (layer 3, row " + std::to_string(n_tokens - 1) + ")"));
      graph.input(InputKind::kTokenIds).back() = 4;
      CHECK(graph.run().ok());
    }
}

TEST_CASE("opencl/failures: a step that stops on request leaves nothing under way and the next one works") {
  const ModelOnCpu alone(tiny_file());
  const std::vector<int32_t> ids = tokens(alone, 73);
  const std::vector<float> expected = prompt_and_decode(*alone.session(256), ids);
  const ModelOnBackends model(tiny_file(), {opencl()});
  int cancelled = 0;
  for (int after = 0; after < 4; ++after) {
    const auto session = model.session(256);
    int left = after;
    const StopCheck stop = [&] { return left-- == 0; };
    const SeqChunk chunk{0, std::span(ids).first(40), 1};
    const auto logits = session->forward({&chunk, 1}, &stop);
    if (logits.ok()) continue;
    ++cancelled;
    CHECK(logits.error().code == ErrorCode::kCancelled);
    CHECK(session->cursor(0) == 0);
    CHECK(same_bits(prompt_and_decode(*session, ids), expected));
  }
  CHECK(cancelled >= 2);
}
