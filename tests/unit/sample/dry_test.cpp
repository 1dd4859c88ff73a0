// DRY on sequences of a few tokens, with repeats counted by hand.
#include "sample/dry.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace minfer::sample;

namespace {

// What each token loses, as "id:penalty id:penalty".
std::string penalties(SamplerParams params, const std::vector<int32_t>& tokens, size_t last_n = 64) {
  if (params.dry_multiplier == 0.0f) params.dry_multiplier = 1.0f;
  Dry dry(params, last_n);
  TokenHistory history(100, 0);
  for (const int32_t token : tokens) history.push(token);
  std::string out;
  for (const Candidate& penalty : dry.penalties(history)) {
    if (!out.empty()) out += ' ';
    out += std::to_string(penalty.id) + ":" + std::to_string(static_cast<int>(penalty.logit));
  }
  return out;
}

SamplerParams base_2(int32_t allowed, std::vector<std::vector<int32_t>> breakers = {}) {
  SamplerParams params;
  params.dry_base = 2.0f;
  params.dry_allowed_length = allowed;
  params.dry_breakers = std::move(breakers);
  return params;
}

}  // namespace

TEST_CASE("sample/dry: the penalty is multiplier times base to the length beyond what is allowed", "[sample]") {
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 1, 2, 3, 4};  // 5 followed the repeat of 4
  CHECK(penalties(base_2(1), tokens) == "5:8");
  CHECK(penalties(base_2(2), tokens) == "5:4");
  CHECK(penalties(base_2(4), tokens) == "5:1");
  CHECK(penalties(base_2(5), tokens).empty());
  SamplerParams params = base_2(2);
  params.dry_multiplier = 3.0f;
  CHECK(penalties(params, tokens) == "5:12");
}

TEST_CASE("sample/dry: every token that followed is penalised for its longest repeat", "[sample]") {
  CHECK(penalties(base_2(1), {1, 7, 2, 1, 8, 1, 9, 2, 1}) == "7:1 8:2 9:1");
  CHECK(penalties(base_2(1), {2, 1, 7, 1, 7, 2, 1}) == "7:2");
  CHECK(penalties(base_2(1), {5, 5, 5, 5}) == "5:4");  // repeats may overlap
}

TEST_CASE("sample/dry: a window no longer than the allowed length costs nothing", "[sample]") {
  CHECK(penalties(base_2(2), {5, 5}).empty());
  CHECK(penalties(base_2(2), {5, 5, 5}) == "5:1");
  CHECK(penalties(base_2(2), {}).empty());
}

TEST_CASE("sample/dry: only the last tokens are looked at", "[sample]") {
  const std::vector<int32_t> tokens = {1, 2, 9, 3, 1, 2};
  CHECK(penalties(base_2(2), tokens, 6) == "9:1");
  CHECK(penalties(base_2(2), tokens, 5).empty());
  CHECK(penalties(base_2(1), tokens, 5) == "9:1");
}

TEST_CASE("sample/dry: no repeat reaches over a breaker", "[sample]") {
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 1, 2, 3, 4};
  CHECK(penalties(base_2(1, {{2}}), tokens) == "5:2");          // 3 4 count
  CHECK(penalties(base_2(1, {{1}}), tokens) == "5:4");          // 2 3 4
  CHECK(penalties(base_2(1, {{4}}), tokens).empty());           // the last token breaks
  CHECK(penalties(base_2(1, {{2, 3}}), tokens) == "5:1");       // 4
  CHECK(penalties(base_2(1, {{2, 3}, {2}}), tokens) == "5:1");  // the longest that begins there
  CHECK(penalties(base_2(1, {{3, 5}}), tokens) == "5:8");       // stands nowhere
  CHECK(penalties(base_2(1, {{4, 6}}), tokens) == "5:8");       // begun, not complete
  CHECK(penalties(base_2(3, {{2}}), tokens).empty());
}

TEST_CASE("sample/dry: a token that is a breaker is never penalised", "[sample]") {
  const std::vector<int32_t> tokens = {1, 2, 5, 1, 2};
  CHECK(penalties(base_2(1), tokens) == "5:2");
  CHECK(penalties(base_2(1, {{5}}), tokens).empty());
  CHECK(penalties(base_2(1, {{5, 8}}), tokens) == "5:2");  // the beginning of one is
}

TEST_CASE("sample/dry: the exponent is capped where an f32 would overflow", "[sample]") {
  SamplerParams params = base_2(1);
  params.dry_base = 1e6f;
  params.dry_multiplier = 1e-30f;
  Dry dry(params, 100);
  TokenHistory history(100, 0);
  for (int i = 0; i < 100; ++i) history.push(5);  // a repeat of 99
  const auto found = dry.penalties(history);
  REQUIRE(found.size() == 1);
  CHECK(found[0].logit == Approx(1e6f));  // floor(88.72 / ln 1e6) = 6
  params.dry_multiplier = 1e30f;
  Dry large(params, 100);
  CHECK(large.penalties(history)[0].logit == std::numeric_limits<float>::max());
  params.dry_base = 1.0f;
  Dry flat(params, 100);
  CHECK(flat.penalties(history)[0].logit == 1e30f);
}

TEST_CASE("sample/token_history: counts the newest part and gives all that is kept", "[sample]") {
  TokenHistory history(5, 3);
  const auto counts = [&] {
    std::string out;
    for (const auto& [token, count] : history.counts()) out += std::to_string(token) + "x" + std::to_string(count) + " ";
    return out;
  };
  for (const int32_t token : {4, 4, 2}) history.push(token);
  CHECK(counts() == "2x1 4x2 ");
  history.push(7);
  CHECK(counts() == "2x1 4x1 7x1 ");
  for (const int32_t token : {7, 7, 1}) history.push(token);
  CHECK(counts() == "1x1 7x2 ");
  CHECK(history.tokens() == std::vector<int32_t>{2, 7, 7, 7, 1});
  CHECK(history.back(0) == 1);
  CHECK(history.back(4) == 2);
  TokenHistory none(0, 0);
  none.push(3);
  CHECK(none.size() == 0);
}
