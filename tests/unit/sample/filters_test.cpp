#include "sample/filters.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

using namespace minfer;
using namespace minfer::sample;

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<int32_t> ids(const Candidates& candidates) {
  std::vector<int32_t> out;
  for (const Candidate& candidate : candidates) out.push_back(candidate.id);
  return out;
}

std::vector<int32_t> gather(const std::vector<float>& logits, int32_t k, const Candidates& edits = {}) {
  Candidates candidates;
  FilterScratch scratch(logits.size());
  REQUIRE(gather_top_k(logits, edits, k, candidates, scratch).ok());
  return ids(candidates);
}

// Candidates whose probabilities are in the given proportion.
Candidates in_proportion(const std::vector<float>& weights) {
  Candidates candidates;
  for (float weight : weights) candidates.push_back({static_cast<int32_t>(candidates.size()), std::log(weight)});
  return candidates;
}

std::vector<int32_t> kept_by_top_p(float p, Candidates candidates) {
  FilterScratch scratch(candidates.size());
  top_p(p, candidates, scratch);
  return ids(candidates);
}

std::vector<int32_t> kept_by_min_p(float p, Candidates candidates) {
  min_p(p, candidates);
  return ids(candidates);
}

using Ids = std::vector<int32_t>;
}  // namespace

TEST_CASE("sample/filters: top-k keeps the k largest in id order", "[sample]") {
  CHECK(gather({1, 5, 3, 4, 2}, 1) == Ids{1});
  CHECK(gather({1, 5, 3, 4, 2}, 3) == Ids{1, 2, 3});
  CHECK(gather({-1, -5, -3, -4, -2}, 2) == Ids{0, 4});
}

TEST_CASE("sample/filters: all that tie with the k-th largest stay", "[sample]") {
  CHECK(gather({1, 5, 3, 3, 3}, 2) == Ids{1, 2, 3, 4});
  CHECK(gather({7, 7, 7}, 1) == Ids{0, 1, 2});
  CHECK(gather({0.0f, -0.0f, -1.0f}, 1) == Ids{0, 1});
}

TEST_CASE("sample/filters: top-k 0 and a k beyond the vocabulary keep every token", "[sample]") {
  CHECK(gather({3, 1, 2}, 0) == Ids{0, 1, 2});
  CHECK(gather({3, 1, 2}, 3) == Ids{0, 1, 2});
  CHECK(gather({3, 1, 2}, 100000) == Ids{0, 1, 2});
}

TEST_CASE("sample/filters: tokens at -inf are never kept", "[sample]") {
  CHECK(gather({-kInf, 1, -kInf, 2}, 0) == Ids{1, 3});
  CHECK(gather({-kInf, 1, -kInf, 2}, 3) == Ids{1, 3});
  CHECK(gather({-kInf, std::numeric_limits<float>::lowest()}, 2) == Ids{1});
}

TEST_CASE("sample/filters: an edit replaces the logit of its id only", "[sample]") {
  CHECK(gather({1, 5, 3, 4, 2}, 2, {{1, 0}}) == Ids{2, 3});
  CHECK(gather({1, 5, 3, 4, 2}, 2, {{0, 6}, {4, 7}}) == Ids{0, 4});
  CHECK(gather({1, 5, 3}, 0, {{0, -kInf}, {1, 1}, {2, -kInf}}) == Ids{1});
}

TEST_CASE("sample/filters: top-k over a long row equals a full sort whatever the order of the row", "[sample]") {
  const size_t n = 20000;
  for (const char* order : {"ascending", "descending", "scattered", "equal"}) {
    CAPTURE(order);
    std::vector<float> logits(n);
    for (size_t i = 0; i < n; ++i)
      logits[i] = order[0] == 'a' ? float(i) : order[0] == 'd' ? float(n - i) : order[0] == 's' ? float(i * 7919 % n / 3) : 1.0f;
    std::vector<float> sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    Ids expected;
    for (size_t i = 0; i < n; ++i)
      if (logits[i] >= sorted[39]) expected.push_back(static_cast<int32_t>(i));
    CHECK(gather(logits, 40) == expected);
  }
}

TEST_CASE("sample/filters: a logit that is not finite is an error naming the token", "[sample]") {
  for (size_t at : {size_t{0}, size_t{700}, size_t{1500}, size_t{1999}}) {
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), kInf}) {
      std::vector<float> logits(2000, -1.0f);  // low, and after the first 600 below what the top-k still looks at
      for (size_t i = 0; i < 600; ++i) logits[i] = static_cast<float>(i);
      logits[at] = bad;
      Candidates candidates;
      FilterScratch scratch(logits.size());
      const Status status = gather_top_k(logits, {}, 1, candidates, scratch);
      REQUIRE_FALSE(status.ok());
      CHECK_THAT(status.error().text, Catch::Contains("logit of token " + std::to_string(at) + " is ") &&
                                          Catch::Contains(bad == kInf ? "infinite" : "not a number"));
    }
  }
}

TEST_CASE("sample/filters: a row of nothing but -inf is an error", "[sample]") {
  const std::vector<float> logits(200, -kInf);
  Candidates candidates;
  FilterScratch scratch(logits.size());
  const Status status = gather_top_k(logits, {}, 40, candidates, scratch);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().text == "no token may be chosen: all 200 logits are -inf");
}

// Proportions 1:4:3:2, so the cumulative probabilities are 0.4, 0.7, 0.9, 1 for ids 1, 2, 3, 0.
TEST_CASE("sample/filters: top-p keeps up to the first whose cumulative probability exceeds p", "[sample]") {
  const Candidates candidates = in_proportion({1, 4, 3, 2});
  CHECK(kept_by_top_p(0.39f, candidates) == Ids{1});
  CHECK(kept_by_top_p(0.41f, candidates) == Ids{1, 2});
  CHECK(kept_by_top_p(0.69f, candidates) == Ids{1, 2});
  CHECK(kept_by_top_p(0.71f, candidates) == Ids{1, 2, 3});
  CHECK(kept_by_top_p(0.91f, candidates) == Ids{0, 1, 2, 3});
  CHECK(kept_by_top_p(1.0f, candidates) == Ids{0, 1, 2, 3});
  // Exactly p is not beyond p: of two equal candidates 0.5 keeps both.
  CHECK(kept_by_top_p(0.5f, {{0, 2.0f}, {1, 2.0f}}) == Ids{0, 1});
}

TEST_CASE("sample/filters: top-p 0 keeps the best candidate and the lowest id of equals", "[sample]") {
  CHECK(kept_by_top_p(0.0f, in_proportion({1, 4, 3, 2})) == Ids{1});
  CHECK(kept_by_top_p(1e-9f, in_proportion({1, 4, 3, 2})) == Ids{1});
  CHECK(kept_by_top_p(0.0f, {{3, 2.0f}, {5, 2.0f}, {9, 2.0f}}) == Ids{3});
}

TEST_CASE("sample/filters: top-p cuts a long flat list at its share", "[sample]") {
  Candidates flat;
  for (int32_t id = 0; id < 1000; ++id) flat.push_back({id, 1.5f});
  const Ids kept = kept_by_top_p(0.75f, flat);
  REQUIRE(kept.size() == 751);  // 750 reach 0.75 exactly, one more exceeds it
  CHECK(kept.front() == 0);
  CHECK(kept.back() == 750);
}

TEST_CASE("sample/filters: min-p keeps what is at least p times as probable as the best", "[sample]") {
  const Candidates candidates = in_proportion({1, 8, 4, 2});
  CHECK(kept_by_min_p(0.0f, candidates) == Ids{0, 1, 2, 3});
  CHECK(kept_by_min_p(0.12f, candidates) == Ids{0, 1, 2, 3});
  CHECK(kept_by_min_p(0.13f, candidates) == Ids{1, 2, 3});
  CHECK(kept_by_min_p(0.26f, candidates) == Ids{1, 2});
  CHECK(kept_by_min_p(0.51f, candidates) == Ids{1});
  CHECK(kept_by_min_p(1.0f, candidates) == Ids{1});
  CHECK(kept_by_min_p(1.0f, {{0, 2.0f}, {1, 1.0f}, {2, 2.0f}}) == Ids{0, 2});
}

// Proportions 1:4:3:2: surprises 2.303, 0.916, 1.204, 1.609, entropy 1.280; so 2, 3, 1, 0 by distance: 0.3, 0.5, 0.9, 1.
TEST_CASE("sample/filters: typical keeps the candidates whose surprise is nearest to the entropy", "[sample]") {
  const auto kept = [](float p, Candidates candidates) {
    FilterScratch scratch(candidates.size());
    typical_p(p, candidates, scratch);
    return ids(candidates);
  };
  const Candidates candidates = in_proportion({1, 4, 3, 2});
  CHECK(kept(0.0f, candidates) == Ids{2});
  CHECK(kept(0.29f, candidates) == Ids{2});
  CHECK(kept(0.31f, candidates) == Ids{2, 3});
  CHECK(kept(0.49f, candidates) == Ids{2, 3});
  CHECK(kept(0.51f, candidates) == Ids{1, 2, 3});
  CHECK(kept(0.91f, candidates) == Ids{0, 1, 2, 3});
  CHECK(kept(1.0f, candidates) == Ids{0, 1, 2, 3});
  CHECK(kept(0.3f, {{3, 2.0f}, {5, 2.0f}, {9, 2.0f}}) == Ids{3});  // all alike: by id
}

TEST_CASE("sample/filters: xtc leaves the least likely of those that reach the threshold", "[sample]") {
  const auto kept = [](float threshold, Candidates candidates) {
    xtc(threshold, candidates);
    return ids(candidates);
  };
  const Candidates candidates = in_proportion({1, 4, 3, 2});  // 0.1, 0.4, 0.3, 0.2
  CHECK(kept(0.41f, candidates) == Ids{0, 1, 2, 3});          // none reaches it
  CHECK(kept(0.35f, candidates) == Ids{0, 1, 2, 3});          // one does
  CHECK(kept(0.25f, candidates) == Ids{0, 2, 3});
  CHECK(kept(0.15f, candidates) == Ids{0, 3});
  CHECK(kept(0.0f, candidates) == Ids{0});
  CHECK(kept(0.3f, in_proportion({2, 2, 1})) == Ids{1, 2});  // equals: the highest id stays
}

// 0, 2, 4, 6: mean 3, standard deviation sqrt(5) = 2.236.
TEST_CASE("sample/filters: top-n-sigma keeps what lies within n standard deviations of the best", "[sample]") {
  const auto kept = [](float n, Candidates candidates) {
    top_n_sigma(n, candidates);
    return ids(candidates);
  };
  const Candidates candidates = {{0, 0.0f}, {1, 6.0f}, {2, 2.0f}, {3, 4.0f}};
  CHECK(kept(0.0f, candidates) == Ids{0, 1, 2, 3});
  CHECK(kept(0.8f, candidates) == Ids{1});
  CHECK(kept(0.9f, candidates) == Ids{1, 3});
  CHECK(kept(1.78f, candidates) == Ids{1, 3});
  CHECK(kept(1.8f, candidates) == Ids{1, 2, 3});
  CHECK(kept(2.7f, candidates) == Ids{0, 1, 2, 3});
  CHECK(kept(0.1f, {{0, 1.0f}, {1, 1.0f}}) == Ids{0, 1});
  CHECK(kept(0.1f, {{4, -3.0f}}) == Ids{4});
}
