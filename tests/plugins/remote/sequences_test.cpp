// Several sequences whose KV lies on the device: in one batch, and sharing blocks that are copied when one of them writes.
#include "offload_run.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

std::vector<float> forward(Session& session, const std::vector<SeqChunk>& chunks) {
  const auto logits = session.forward(chunks);
  if (!logits.ok()) FAIL(logits.error().text);
  return {logits->values.begin(), logits->values.end()};
}

std::vector<float> last_row(const std::vector<float>& rows, size_t n_vocab) {
  return {rows.end() - static_cast<std::ptrdiff_t>(n_vocab), rows.end()};
}

CParams with_seqs(uint32_t n) {
  CParams cparams;
  cparams.max_seqs = n;
  return cparams;
}

}  // namespace

TEST_CASE("remote/sequences: two sequences in one batch get what each gets alone") {
  const ModelOnCpu alone(tiny_file());
  const ModelOnBackends model(tiny_file(), {backend("remote", 1), cpu()});
  const std::vector<int32_t> a = tokens(alone, 21, 1), b = tokens(alone, 14, 2);
  const std::vector<float> expected_a = run_tokens(*alone.session(256), a, 1), expected_b = run_tokens(*alone.session(256), b, 1);
  const auto session = model.session(256, with_seqs(2));
  forward(*session, {{0, std::span(a).first(9), 0}, {1, std::span(b).first(3), 0}});
  forward(*session, {{1, std::span(b).subspan(3, 10), 0}, {0, std::span(a).subspan(9, 11), 0}});
  const std::vector<float> rows = forward(*session, {{0, std::span(a).last(1), 1}, {1, std::span(b).last(1), 1}});
  std::vector<float> expected = expected_a;
  expected.insert(expected.end(), expected_b.begin(), expected_b.end());
  CHECK(same_bits(rows, expected));
  CHECK(session->stats().executor.staged_bytes > 0);
}

TEST_CASE("remote/sequences: a shared prefix is copied on the device when one sequence writes into it") {
  const ModelOnCpu alone(tiny_file());
  const size_t n_vocab = alone->info().n_vocab;
  const std::vector<int32_t> prefix = tokens(alone, 70, 3);
  const std::vector<int32_t> tail_a = tokens(alone, 5, 4), tail_b = tokens(alone, 5, 5);
  const auto expected = [&](const std::vector<int32_t>& tail) {
    const auto session = alone.session(256);
    run_tokens(*session, prefix, 1);
    return run_tokens(*session, tail, static_cast<uint32_t>(tail.size()));
  };
  for (const int layers : {1, static_cast<int>(alone->info().n_layers)}) {
    const ModelOnBackends model(tiny_file(), {backend("remote", layers), cpu()});
    INFO(layers << " layers");
    const auto session = model.session(256, with_seqs(3));
    forward(*session, {{0, prefix, 1}});
    REQUIRE(session->share_prefix(0, 1, 70).ok());
    REQUIRE(session->share_prefix(0, 2, 70).ok());
    // Both write behind the prefix, into what was one block: in separate steps, then in one.
    CHECK(same_bits(forward(*session, {{1, tail_b, 5}}), expected(tail_b)));
    std::vector<float> both = expected(tail_a);
    const std::vector<float> second = expected(tail_b);
    both.insert(both.end(), second.begin(), second.end());
    CHECK(same_bits(forward(*session, {{0, tail_a, 5}, {2, tail_b, 5}}), both));
    // Sequence 1 still has its own rows.
    REQUIRE(session->rollback(1, 74).ok());
    CHECK(same_bits(forward(*session, {{1, std::span(tail_b).last(1), 1}}), last_row(expected(tail_b), n_vocab)));
  }
}
