// The shares in which a step of the chain lets tokens be drawn, against shares worked out by hand: 16,000 draws of one seed each.
#include <catch2/catch.hpp>
#include <cmath>

#include "sample/sampler.hpp"

using namespace minfer::sample;

namespace {

constexpr int kDraws = 16000;

// Nothing but the temperature 1 and what a test sets.
SamplerParams bare() {
  SamplerParams params;
  params.temperature = 1.0f;
  params.top_k = 0;
  params.top_p = 1.0f;
  params.repeat_penalty = 1.0f;
  return params;
}

std::vector<float> log_of(const std::vector<double>& weights) {
  std::vector<float> logits;
  for (const double weight : weights) logits.push_back(static_cast<float>(std::log(weight)));
  return logits;
}

// Chi-square of the draws against the shares; tokens of share 0 must never be drawn. 18.47 (4 degrees of freedom) is passed by
// chance once in 1,000 seeds, with fewer degrees less often.
void check_shares(Sampler& sampler, const std::vector<float>& logits, const std::vector<double>& shares) {
  std::vector<double> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) {
    const auto token = sampler.sample(logits);
    if (!token.ok()) FAIL(token.error().text);
    ++counts[static_cast<size_t>(*token)];
  }
  double total = 0.0, chi_square = 0.0;
  for (const double share : shares) total += share;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double expected = kDraws * shares[i] / total;
    if (shares[i] == 0.0)
      CHECK(counts[i] == 0.0);
    else
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  CHECK(chi_square < 18.47);
}

void check_shares(const SamplerParams& params, const std::vector<float>& logits, const std::vector<double>& shares) {
  auto sampler = Sampler::create(params, static_cast<int32_t>(logits.size()), 256);
  REQUIRE(sampler.ok());
  check_shares(*sampler, logits, shares);
}

}  // namespace

// 8:4:2:1:1 at temperature 1; twice the logits at temperature 2.
TEST_CASE("sample/distribution: draws follow the probabilities at the temperature", "[sample]") {
  SamplerParams params = bare();
  check_shares(params, log_of({8, 4, 2, 1, 1}), {8, 4, 2, 1, 1});
  params.temperature = 2.0f;
  check_shares(params, log_of({64, 16, 4, 1, 1}), {8, 4, 2, 1, 1});
}

TEST_CASE("sample/distribution: what the filters keep is drawn in its old proportions", "[sample]") {
  const std::vector<float> logits = log_of({1, 4, 3, 2});
  SamplerParams params = bare();
  params.top_k = 3;
  check_shares(params, logits, {0, 4, 3, 2});
  params = bare();
  params.top_p = 0.6f;
  check_shares(params, logits, {0, 4, 3, 0});
  params = bare();
  params.min_p = 0.4f;
  check_shares(params, logits, {0, 4, 3, 2});
  params = bare();
  params.typical_p = 0.4f;
  check_shares(params, logits, {0, 0, 3, 2});
  params = bare();
  params.top_n_sigma = 1.5f;  // the deviation of ln 1, 4, 3, 2 is 0.518: all above ln 4 - 0.776 = ln 1.84
  check_shares(params, logits, {0, 4, 3, 2});
}

// Half of the time all four in 1:4:3:2, half of the time the best one is gone: 1:0:3:2.
TEST_CASE("sample/distribution: XTC drops the best as often as its probability says", "[sample]") {
  SamplerParams params = bare();
  params.xtc_probability = 0.5f;
  params.xtc_threshold = 0.25f;
  check_shares(params, log_of({1, 4, 3, 2}), {0.1 + 1 / 6.0, 0.4, 0.3 + 3 / 6.0, 0.2 + 2 / 6.0});
  params.xtc_probability = 1.0f;
  check_shares(params, log_of({1, 4, 3, 2}), {1, 0, 3, 2});
  params.xtc_probability = 0.25f;
  check_shares(params, log_of({1, 4, 3, 2}), {0.3 + 1 / 6.0, 1.2, 0.9 + 3 / 6.0, 0.6 + 2 / 6.0});
}

// A bias of ln 3 triples; a penalty of ln 2 per occurrence halves, twice for a token that is there twice.
TEST_CASE("sample/distribution: bias and penalties change the shares by their factors", "[sample]") {
  SamplerParams params = bare();
  params.logit_bias = {{1, static_cast<float>(std::log(3.0))}};
  check_shares(params, log_of({1, 1, 2}), {1, 3, 2});

  // The window stays as it is: these samplers accept nothing.
  params = bare();
  params.frequency_penalty = static_cast<float>(std::log(2.0));
  auto sampler = Sampler::create(params, 3, 256);
  REQUIRE(sampler.ok());
  sampler->accept(std::vector<int32_t>{2, 0, 2});
  check_shares(*sampler, log_of({4, 1, 4}), {2, 1, 1});
}

// mu hardly moves: it stays at 2 tau = 2 bits, so tokens of at least a quarter are left.
TEST_CASE("sample/distribution: mirostat 2 cuts at its bound and ignores the temperature", "[sample]") {
  SamplerParams params = bare();
  params.temperature = 7.0f;
  params.mirostat = Mirostat::kV2;
  params.mirostat_tau = 1.0f;
  params.mirostat_eta = 1e-6f;
  check_shares(params, log_of({1, 4, 3, 2}), {0, 4, 3, 0});
  params.mirostat_tau = 2.0f;  // 4 bits: all
  check_shares(params, log_of({1, 4, 3, 2}), {1, 4, 3, 2});
  params.mirostat_tau = 0.1f;  // 0.2 bits: none, so the best
  check_shares(params, log_of({1, 4, 3, 2}), {0, 1, 0, 0});
}

// Shares 1/i^2 are Zipf's law with s = 2, so k = sqrt(2^mu / (1 - 1/10)): with 2^mu = 0.9 * 9.5 it is 3.08, with 0.9 * 4.5 it is 2.12.
TEST_CASE("sample/distribution: mirostat 1 keeps as many as Zipf's law gives", "[sample]") {
  std::vector<double> weights;
  for (int i = 1; i <= 10; ++i) weights.push_back(1.0 / (i * i));
  SamplerParams params = bare();
  params.mirostat = Mirostat::kV1;
  params.mirostat_eta = 1e-6f;
  for (const int32_t m : {3, 10, 100}) {
    params.mirostat_m = m;
    params.mirostat_tau = static_cast<float>(std::log2(0.9 * 9.5) / 2);
    check_shares(params, log_of(weights), {36, 9, 4, 0, 0, 0, 0, 0, 0, 0});
    params.mirostat_tau = static_cast<float>(std::log2(0.9 * 4.5) / 2);
    check_shares(params, log_of(weights), {4, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  }
  // Two equal logits to estimate from: no slope, s = 1, k = 1, and all that tie with the first stay.
  params.mirostat_m = 2;
  check_shares(params, {2, 2, 1.9f}, {1, 1, 0});
}

// Two equal tokens: a surprise of 1 bit. mu goes from 6 to 6 - 0.5 * (1 - 3) = 7, 8, 9.
TEST_CASE("sample/distribution: mirostat moves mu by the surprise of what was drawn", "[sample]") {
  for (const Mirostat version : {Mirostat::kV1, Mirostat::kV2}) {
    SamplerParams params = bare();
    params.mirostat = version;
    params.mirostat_tau = 3.0f;
    params.mirostat_eta = 0.5f;
    auto sampler = Sampler::create(params, 2, 256);
    REQUIRE(sampler.ok());
    CHECK(sampler->state().mirostat_mu == 6.0);
    for (const double mu : {7.0, 8.0, 9.0}) {
      REQUIRE(sampler->sample(std::vector<float>{2, 2}).ok());
      CHECK(sampler->state().mirostat_mu == Approx(mu).epsilon(1e-12));
    }
  }
}

TEST_CASE("sample/distribution: every step at its off value leaves the draws as they are", "[sample]") {
  const std::vector<float> logits = log_of({5, 1, 4, 3, 2, 2, 1, 1});
  const auto draws = [&](const SamplerParams& params) {
    auto sampler = Sampler::create(params, 8, 256);
    REQUIRE(sampler.ok());
    std::vector<int32_t> ids;
    for (int i = 0; i < 200; ++i) {
      ids.push_back(*sampler->sample(logits));
      sampler->accept(ids.back());
    }
    return ids;
  };
  const std::vector<int32_t> plain = draws(bare());
  const auto with = [&](auto change) {
    SamplerParams params = bare();
    change(params);
    return draws(params);
  };
  CHECK(with([](SamplerParams& p) { p.repeat_penalty = 2.0f, p.repeat_last_n = 0; }) == plain);
  CHECK(with([](SamplerParams& p) { p.repeat_last_n = -1; }) == plain);
  CHECK(with([](SamplerParams& p) { p.logit_bias = {{3, 0.0f}}; }) == plain);
  CHECK(with([](SamplerParams& p) { p.dry_allowed_length = 1, p.dry_base = 9.0f, p.dry_penalty_last_n = -1; }) == plain);
  CHECK(with([](SamplerParams& p) { p.xtc_threshold = 0.0f; }) == plain);
  CHECK(with([](SamplerParams& p) { p.mirostat_tau = 1.0f, p.mirostat_eta = 1.0f, p.mirostat_m = 1; }) == plain);
  CHECK(with([](SamplerParams& p) { p.top_k = 8; }) == plain);
  // And the same steps do something when they are on.
  CHECK(with([](SamplerParams& p) { p.repeat_penalty = 2.0f; }) != plain);
  CHECK(with([](SamplerParams& p) { p.logit_bias = {{3, 1.0f}}; }) != plain);
  CHECK(with([](SamplerParams& p) { p.dry_multiplier = 1.0f, p.dry_allowed_length = 1; }) != plain);
  CHECK(with([](SamplerParams& p) { p.xtc_probability = 1.0f, p.xtc_threshold = 0.1f; }) != plain);
  CHECK(with([](SamplerParams& p) { p.mirostat = Mirostat::kV2, p.mirostat_tau = 1.0f; }) != plain);
  CHECK(with([](SamplerParams& p) { p.typical_p = 0.5f; }) != plain);
  CHECK(with([](SamplerParams& p) { p.top_n_sigma = 1.0f; }) != plain);
}
