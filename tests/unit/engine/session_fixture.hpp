// Sessions of the toy model, driven with few words.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/session.hpp"
#include "support/toy_architecture.hpp"

namespace minfer::test {

using Rows = std::vector<std::vector<float>>;

inline std::unique_ptr<Session> make_session(const ToyModel& toy, const CParams& cparams = toy_cparams(), size_t capacity = 8) {
  auto session = Session::create(*toy.model, cparams, capacity);
  if (!session.ok()) FAIL(session.error().text);
  return std::move(*session);
}

inline Rows rows_of(const Logits& logits) {
  Rows rows;
  for (uint32_t r = 0; r < logits.n_rows; ++r) rows.emplace_back(logits.row(r).begin(), logits.row(r).end());
  return rows;
}

// One step that must work.
inline Rows step(Session& session, std::span<const SeqChunk> chunks) {
  auto logits = session.forward(chunks);
  if (!logits.ok()) FAIL(logits.error().text);
  return rows_of(*logits);
}
inline Rows step(Session& session, const std::vector<int32_t>& tokens, uint32_t n_out, SeqId seq = 0) {
  const SeqChunk chunk{seq, tokens, n_out};
  return step(session, {&chunk, 1});
}
// A step that must fail, and with what.
inline Error failure(Session& session, const std::vector<int32_t>& tokens, uint32_t n_out, SeqId seq = 0, const StopCheck* stop = nullptr) {
  const SeqChunk chunk{seq, tokens, n_out};
  auto logits = session.forward({&chunk, 1}, stop);
  if (logits.ok()) FAIL("the step did not fail");
  return logits.error();
}

inline bool same_bits(const Rows& a, const Rows& b) {
  if (a.size() != b.size() || a.empty()) return false;
  for (size_t r = 0; r < a.size(); ++r)
    if (a[r].size() != b[r].size() || std::memcmp(a[r].data(), b[r].data(), a[r].size() * 4) != 0) return false;
  return true;
}

// Tokens [first, first + n) of a longer list.
inline std::vector<int32_t> slice(const std::vector<int32_t>& tokens, size_t first, size_t n) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.begin() + static_cast<std::ptrdiff_t>(first + n)};
}

// The largest difference to expected rows, from row `first` on.
inline double worst(const Rows& rows, const std::vector<std::vector<double>>& expected, size_t first) {
  REQUIRE(rows.size() + first <= expected.size());
  double most = 0;
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const double difference = std::abs(rows[r][i] - expected[first + r][i]);
      if (!(difference <= most)) most = difference;  // NaN is the worst
    }
  return most;
}

inline double spread(const std::vector<double>& row) {
  return *std::max_element(row.begin(), row.end()) - *std::min_element(row.begin(), row.end());
}

inline uint32_t count_ops(const Session& session, Op op) {
  uint32_t n = 0;
  for (const Node& node : session.last_graph()->graph.nodes) n += node.op == op;
  return n;
}

}  // namespace minfer::test
