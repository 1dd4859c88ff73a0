// What the cpu device refuses and keeps, on graphs made by hand: padding rows, positions, values that are not finite or do not fit, the
// window of attention, the caller's floating-point mode.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "cpu_engine_device.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

constexpr uint32_t kHeadDim = 16;
constexpr uint32_t kVocab = 40;

CParams params(uint32_t n_ctx = 128, uint32_t max_seqs = 2, KvFormat format = KvFormat::kF32) {
  CParams cparams;
  cparams.n_ctx = n_ctx;
  cparams.max_seqs = max_seqs;
  cparams.kv_format = format;
  return cparams;
}

// Row i of a table of kVocab rows: values that repeat nowhere.
std::vector<float> table(float salt, uint32_t width = kHeadDim) {
  std::vector<float> values;
  for (uint32_t i = 0; i < kVocab * width; ++i) values.push_back(std::sin(static_cast<float>(i) * 0.37f + salt));
  return values;
}

// Tokens look up K, V and Q in tables; layer 2 stores K and V and attends.
struct AttentionGraph : HandGraph {
  AttentionGraph(uint32_t n_tokens, const CParams& cparams, uint32_t window = 0, std::vector<float> k_table = table(1),
                 std::vector<float> v_table = table(2), unsigned threads = 2)
      : HandGraph(threads, n_tokens, cparams) {
    const uint32_t wk = add_weight(kRoleEmbedding, {kHeadDim, kVocab}, k_table);
    const uint32_t wv = add_weight(kRoleEmbedding, {kHeadDim, kVocab}, v_table);
    const uint32_t wq = add_weight(kRoleEmbedding, {kHeadDim, kVocab}, table(3));
    const ValueId ids = g().input(InputKind::kTokenIds), positions = g().input(InputKind::kPositions);
    const ValueId row_seq = g().input(InputKind::kRowSeq), blocks = g().input(InputKind::kBlockTable);
    g().layer = 2;
    const ValueId k = g().get_rows(g().weight(wk), ids), v = g().get_rows(g().weight(wv), ids), q = g().get_rows(g().weight(wq), ids);
    g().kv_store(k, v, positions, row_seq, blocks, 1, kHeadDim);
    out = g().attention(q, positions, row_seq, blocks, 1, 1, kHeadDim, 0.25f, window);
    prepare({out});
    for (uint32_t i = 0; i < n_tokens; ++i) set_row(i, static_cast<int32_t>(i % kVocab), static_cast<int32_t>(i), 0);
    input(InputKind::kBlockTable)[0] = 1;
  }
  void set_row(uint32_t row, int32_t token, int32_t position, int32_t seq) {
    for (InputKind kind : {InputKind::kTokenIds, InputKind::kPositions, InputKind::kRowSeq})
      if (input(kind).size() <= row) input(kind).resize(row + 1);
    input(InputKind::kTokenIds)[row] = token;
    input(InputKind::kPositions)[row] = position;
    input(InputKind::kRowSeq)[row] = seq;
  }
  std::string refusal() {
    const Status status = run();
    if (status.ok()) FAIL("the run was not refused");
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

// Attention of row p over rows first..p of the same tokens, in double.
std::vector<double> expected_attention(int p, int first) {
  const std::vector<float> k = table(1), v = table(2), q = table(3);
  std::vector<double> scores;
  double sum = 0;
  for (int j = first; j <= p; ++j) {
    double dot = 0;
    for (uint32_t d = 0; d < kHeadDim; ++d) dot += double{q[p * kHeadDim + d]} * k[j * kHeadDim + d];
    scores.push_back(std::exp(dot * 0.25));
    sum += scores.back();
  }
  std::vector<double> out(kHeadDim, 0);
  for (int j = first; j <= p; ++j)
    for (uint32_t d = 0; d < kHeadDim; ++d) out[d] += scores[j - first] / sum * v[j * kHeadDim + d];
  return out;
}

}  // namespace

TEST_CASE("cpu/device: attention sees the positions of its window and no others") {
  for (const uint32_t window : {0u, 1u, 4u, 30u}) {
    AttentionGraph graph(12, params(), window);
    REQUIRE(graph.run().ok());
    const std::vector<float> found = graph.read(graph.out);
    double worst = 0;
    for (int p = 0; p < 12; ++p) {
      const int first = window ? std::max(0, p + 1 - static_cast<int>(window)) : 0;
      const std::vector<double> expected = expected_attention(p, first);
      for (uint32_t d = 0; d < kHeadDim; ++d) worst = std::max(worst, std::abs(found[p * kHeadDim + d] - expected[d]));
    }
    INFO("window " << window);
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("cpu/device: two windows in one graph resolve their rows apart") {
  HandGraph graph(2, 12, params());
  const uint32_t wk = graph.add_weight(kRoleEmbedding, {kHeadDim, kVocab}, table(1));
  const uint32_t wv = graph.add_weight(kRoleEmbedding, {kHeadDim, kVocab}, table(2));
  const uint32_t wq = graph.add_weight(kRoleEmbedding, {kHeadDim, kVocab}, table(3));
  GraphWriter& g = graph.g();
  const ValueId ids = g.input(InputKind::kTokenIds), positions = g.input(InputKind::kPositions);
  const ValueId row_seq = g.input(InputKind::kRowSeq), blocks = g.input(InputKind::kBlockTable);
  const ValueId k = g.get_rows(g.weight(wk), ids), v = g.get_rows(g.weight(wv), ids), q = g.get_rows(g.weight(wq), ids);
  g.kv_store(k, v, positions, row_seq, blocks, 1, kHeadDim);
  const ValueId near = g.attention(q, positions, row_seq, blocks, 1, 1, kHeadDim, 0.25f, 2);
  const ValueId far = g.attention(q, positions, row_seq, blocks, 1, 1, kHeadDim, 0.25f, 0);
  graph.prepare({near, far});
  for (int32_t i = 0; i < 12; ++i) {
    graph.input(InputKind::kTokenIds).push_back(i);
    graph.input(InputKind::kPositions).push_back(i);
    graph.input(InputKind::kRowSeq).push_back(0);
  }
  graph.input(InputKind::kBlockTable)[0] = 0;
  REQUIRE(graph.run().ok());
  const std::vector<double> last_near = expected_attention(11, 10), last_far = expected_attention(11, 0);
  const std::vector<float> found_near = graph.read(near), found_far = graph.read(far);
  for (uint32_t d = 0; d < kHeadDim; ++d) {
    CHECK(found_near[11 * kHeadDim + d] == Approx(last_near[d]).margin(1e-6));
    CHECK(found_far[11 * kHeadDim + d] == Approx(last_far[d]).margin(1e-6));
  }
}

TEST_CASE("cpu/device: a padding row stores nothing and its neighbours get what they get without it") {
  for (const uint32_t n : {4u, 9u}) {
    AttentionGraph padded(n, params());
    // A row of padding may hold anything: its token alone must exist.
    padded.set_row(n - 2, 7, -5, -1);
    padded.set_row(n - 1, 8, 1000000, -1);
    const std::vector<std::byte> k_before = bytes_of(padded.k()), v_before = bytes_of(padded.v());
    REQUIRE(padded.run().ok());
    AttentionGraph alone(n - 2, params());
    REQUIRE(alone.run().ok());
    const std::vector<float> with = padded.read(padded.out), without = alone.read(alone.out);
    CHECK(std::memcmp(with.data(), without.data(), without.size() * sizeof(float)) == 0);
    CHECK(bytes_of(padded.k()) == bytes_of(alone.k()));
    CHECK(bytes_of(padded.v()) == bytes_of(alone.v()));
    CHECK(bytes_of(padded.k()) != k_before);
    CHECK(bytes_of(padded.v()) != v_before);
    // Nothing but padding.
    const std::vector<std::byte> k_full = bytes_of(padded.k());
    for (uint32_t i = 0; i < n; ++i) padded.set_row(i, 3, 0, -1);
    CHECK(padded.run().ok());
    CHECK(bytes_of(padded.k()) == k_full);
  }
}

TEST_CASE("cpu/device: a row that points outside its context or sequences or blocks is refused and nothing is stored") {
  AttentionGraph graph(3, params(100));
  const std::vector<std::byte> before = bytes_of(graph.k());
  graph.set_row(2, 0, 100, 0);  // blocks reach to 127, the context does not
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: position 100 is outside the context of 100"));
  graph.set_row(2, 0, -1, 0);
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: position -1 is outside the context"));
  graph.set_row(2, 0, 2, 2);
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: sequence 2 does not exist"));
  graph.set_row(2, 0, 70, 0);
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: no KV block holds position 64 of sequence 0"));
  graph.input(InputKind::kBlockTable)[1] = 2;  // the regions have two blocks
  CHECK_THAT(graph.refusal(), Catch::Contains("row 2: no KV block holds position 64"));
  graph.set_row(2, 0, 2, 1);
  CHECK_THAT(graph.refusal(), Catch::Contains("no KV block holds position 0 of sequence 1"));
  graph.set_row(2, 0, 2, 0);
  graph.input(InputKind::kRowSeq).pop_back();
  CHECK_THAT(graph.refusal(), Catch::Contains("sizes that the plan was made for"));
  CHECK(bytes_of(graph.k()) == before);
  graph.set_row(2, 0, 2, 0);
  CHECK(graph.run().ok());
  CHECK(bytes_of(graph.k()) != before);
}

TEST_CASE("cpu/device: a token outside the embedding is refused with its row") {
  AttentionGraph graph(3, params());
  graph.set_row(1, static_cast<int32_t>(kVocab), 1, 0);
  CHECK_THAT(graph.refusal(), Catch::Contains("a token id is outside the embedding (row 1)"));
  graph.set_row(1, -1, 1, 0);
  CHECK_THAT(graph.refusal(), Catch::Contains("row 1"));
}

TEST_CASE("cpu/device: a K or V beyond f16 or not finite is refused with layer and row") {
  for (const bool in_v : {false, true}) {
    std::vector<float> k = table(1), v = table(2);
    (in_v ? v : k)[5 * kHeadDim + 3] = 70000.0f;
    AttentionGraph f16(8, params(128, 1, KvFormat::kF16), 0, k, v);
    CHECK_THAT(f16.refusal(), Catch::Contains("beyond what the KV format holds") && Catch::Contains("(layer 2, row 5)"));
    f16.set_row(5, 6, 5, 0);  // another token
    CHECK(f16.run().ok());
    AttentionGraph f32(8, params(128, 1, KvFormat::kF32), 0, k, v);
    CHECK(f32.run().ok());
    (in_v ? v : k)[5 * kHeadDim + 3] = std::numeric_limits<float>::infinity();
    AttentionGraph infinite(8, params(128, 1, KvFormat::kF32), 0, k, v);
    CHECK_THAT(infinite.refusal(), Catch::Contains("not finite") && Catch::Contains("(layer 2, row 5)"));
  }
}

TEST_CASE("cpu/device: an activation that is not finite is refused with layer and row") {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const uint32_t n_tokens : {1u, 3u, 12u}) {  // prepared by every thread for itself, or by all together
      HandGraph graph(2, n_tokens, params());
      std::vector<float> embedding = table(1, 32);
      embedding[9 * 32 + 31] = bad;  // token 9
      const uint32_t embed = graph.add_weight(kRoleEmbedding, {32, kVocab}, embedding);
      std::vector<std::byte> blocks(64 * 34);  // Q8_0: 64 rows of one block, f16 scale 1 and 32 ones
      for (size_t row = 0; row < 64; ++row) {
        blocks[row * 34 + 1] = std::byte{0x3c};
        for (size_t i = 0; i < 32; ++i) blocks[row * 34 + 2 + i] = std::byte{1};
      }
      const uint32_t matrix = graph.add_weight(kRoleMatrix, {32, 64}, DType::kQ8_0, blocks);
      GraphWriter& g = graph.g();
      g.layer = 3;
      const ValueId x = g.get_rows(g.weight(embed), g.input(InputKind::kTokenIds));
      const ValueId y = g.matmul(x, g.weight(matrix));
      graph.prepare({y});
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

#if defined(__x86_64__)
TEST_CASE("cpu/device: the caller's floating-point mode changes no result and is restored") {
  for (const unsigned threads : {1u, 2u}) {
    AttentionGraph graph(6, params(), 0, table(1), table(2), threads);
    REQUIRE(graph.run().ok());
    const std::vector<float> expected = graph.read(graph.out);
    const unsigned before = _mm_getcsr();
    constexpr unsigned kStrange = 0x1f80 | 0x8040 | 0x6000;  // subnormals to zero both ways, round towards zero
    _mm_setcsr(kStrange);
    const Status status = graph.run();
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    REQUIRE(status.ok());
    CHECK(after == kStrange);
    const std::vector<float> found = graph.read(graph.out);
    CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
    // A failing run restores it too.
    graph.set_row(0, -1, 0, 0);
    _mm_setcsr(kStrange);
    const Status failed = graph.run();
    const unsigned after_failure = _mm_getcsr();
    _mm_setcsr(before);
    CHECK_FALSE(failed.ok());
    CHECK(after_failure == kStrange);
  }
}
#endif
