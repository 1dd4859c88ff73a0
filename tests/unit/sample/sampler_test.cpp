// Behaviour of the whole chain on rows of a few tokens, with answers worked out by hand.
#include "sample/sampler.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <set>

using namespace minfer;
using namespace minfer::sample;

namespace {
constexpr int32_t kA = 0, kB = 1, kX = 2;

SamplerParams greedy_params() {
  SamplerParams params;
  params.temperature = 0.0f;
  params.repeat_penalty = 1.0f;
  return params;
}

Sampler make(const SamplerParams& params, int32_t n_vocab = 3) {
  auto sampler = Sampler::create(params, n_vocab, 256);
  REQUIRE(sampler.ok());
  return std::move(sampler).value();
}

// `n` tokens as letters, from a model whose logits never change, after a prompt of letters.
std::string generate(const SamplerParams& params, const std::vector<float>& logits, std::string_view prompt, int n) {
  Sampler sampler = make(params, static_cast<int32_t>(logits.size()));
  for (char letter : prompt) sampler.accept(letter == 'A' ? kA : letter == 'B' ? kB : kX);
  std::string text;
  for (int i = 0; i < n; ++i) {
    const auto id = sampler.sample(logits);
    REQUIRE(id.ok());
    sampler.accept(*id);
    text += "ABXYZ"[*id];
  }
  return text;
}

std::string refusal(const SamplerParams& params) {
  const auto sampler = Sampler::create(params, 3, 256);
  REQUIRE_FALSE(sampler.ok());
  CHECK(sampler.error().code == ErrorCode::kInvalidArgument);
  CHECK(validate(params).error().text == sampler.error().text);
  return sampler.error().text;
}
}  // namespace

TEST_CASE("sample/sampler: temperature 0 takes the largest logit for every seed", "[sample]") {
  SamplerParams params = greedy_params();
  for (uint64_t seed : {0, 1, 42}) {
    params.seed = seed;
    CHECK(generate(params, {2.0f, 1.625f, -16}, "X", 8) == "AAAAAAAA");
  }
  params.temperature = 9e-7f;
  CHECK(generate(params, {2.0f, 1.999f, -16}, "X", 8) == "AAAAAAAA");
}

TEST_CASE("sample/sampler: greedy ties go to the lowest id", "[sample]") {
  Sampler sampler = make(greedy_params(), 4);
  CHECK(*sampler.sample(std::vector<float>{1, 3, 3, 3}) == 1);
}

TEST_CASE("sample/sampler: greedy choices draw no random number and others draw one", "[sample]") {
  // Two equal tokens: the choice tells on which side of one half the number lay.
  // Seed 42 gives 0.742, 0.160, 0.279, 0.344, 0.038: B, then four times A.
  SamplerParams params;
  params.repeat_penalty = 1.0f;
  CHECK(generate(params, {2, 2, -16}, "X", 5) == "BAAAA");
  Sampler sampler = make(params);
  CHECK(*sampler.sample(std::vector<float>{2, 2, -16}) == kB);
  CHECK(*sampler.sample(std::vector<float>{9, -9, -9}) == kA);  // one candidate left: a number is drawn all the same
  CHECK_FALSE(sampler.sample(std::vector<float>(3, std::numeric_limits<float>::quiet_NaN())).ok());  // none
  CHECK(*sampler.sample(std::vector<float>{-2, 2, 2}) == kB);
}

TEST_CASE("sample/sampler: the same seed repeats and other seeds differ", "[sample]") {
  SamplerParams params = greedy_params();
  params.temperature = 1.0f;
  const std::vector<float> logits = {2.0f, 1.625f, -16};
  for (uint64_t seed : {0, 7}) {
    params.seed = seed;
    CHECK(generate(params, logits, "X", 64) == generate(params, logits, "X", 64));
  }
  std::set<std::string> texts;
  for (params.seed = 0; params.seed < 20; ++params.seed) texts.insert(generate(params, logits, "X", 64));
  CHECK(texts.size() == 20);
}

TEST_CASE("sample/sampler: filters at their edges keep the right tokens", "[sample]") {
  SamplerParams params = greedy_params();
  params.temperature = 1.0f;
  params.top_k = 0;
  params.top_p = 1.0f;
  std::set<std::string> seen;
  for (params.seed = 1; params.seed <= 200; ++params.seed) seen.insert(generate(params, {2, 2, -30, -30, -30}, "X", 1));
  CHECK(seen == std::set<std::string>{"A", "B"});

  params.seed = 42;
  const std::vector<float> logits = {2, 0, -30, -30, -30};
  const std::string all_a(64, 'A');
  const std::string unfiltered = generate(params, logits, "X", 64);
  CHECK(unfiltered != all_a);
  for (float p : {0.0f, 1e-9f}) {
    SamplerParams changed = params;
    changed.top_p = p;
    CHECK(generate(changed, logits, "X", 64) == all_a);
  }
  SamplerParams changed = params;
  changed.min_p = 1.0f;
  CHECK(generate(changed, logits, "X", 64) == all_a);
  changed = params;
  changed.top_k = 1;
  CHECK(generate(changed, logits, "X", 64) == all_a);
  changed.top_k = 100000;
  CHECK(generate(changed, logits, "X", 64) == unfiltered);
}

// e^-2 = 0.135 is below 0.2; divided by the temperature first it would be e^-0.5 = 0.607, and B would stay.
TEST_CASE("sample/sampler: min-p looks at the distribution before temperature", "[sample]") {
  SamplerParams params = greedy_params();
  params.temperature = 4.0f;
  params.top_k = 0;
  params.top_p = 1.0f;
  const std::vector<float> logits = {2, 0, -30, -30, -30};
  CHECK(generate(params, logits, "X", 64).find('B') != std::string::npos);
  params.min_p = 0.2f;
  CHECK(generate(params, logits, "X", 64) == std::string(64, 'A'));
}

// A 4 / 1.5 = 2.67 is below B 3, B 3 / 1.5 = 2 below that.
TEST_CASE("sample/sampler: the penalty window counts the end of the prompt", "[sample]") {
  SamplerParams params = greedy_params();
  params.repeat_penalty = 1.5f;
  const std::vector<float> logits = {4, 3, -16};
  const std::string prompt = "A" + std::string(70, 'X');
  CHECK(generate(params, logits, prompt, 3) == "ABA");
  params.repeat_last_n = 71;
  CHECK(generate(params, logits, prompt, 3) == "BAA");
  params.repeat_last_n = 70;
  CHECK(generate(params, logits, prompt, 3) == "ABA");
  params.repeat_last_n = 256;
  CHECK(generate(params, logits, prompt, 3) == "BAA");
  params.repeat_last_n = -1;  // the whole context: 256
  CHECK(generate(params, logits, prompt, 3) == "BAA");
  CHECK(generate(params, logits, "A" + std::string(255, 'X'), 1) == "B");
  CHECK(generate(params, logits, "A" + std::string(256, 'X'), 1) == "A");
  params.repeat_last_n = 0;
  CHECK(generate(params, logits, prompt, 3) == "AAA");
}

TEST_CASE("sample/sampler: frequency and presence penalties count prompt and generated tokens", "[sample]") {
  const std::vector<float> logits = {2.0f, 1.625f, -16};
  SamplerParams params = greedy_params();
  params.frequency_penalty = 0.25f;
  CHECK(generate(params, logits, "X", 8) == "AABABABA");
  CHECK(generate(params, logits, "AAAAA", 8) == "BBBBABAB");
  params.frequency_penalty = 0.0f;
  params.presence_penalty = 0.5f;
  CHECK(generate(params, logits, "X", 6) == "ABAAAA");
}

TEST_CASE("sample/sampler: penalties subtract first and the repeat penalty moves both signs down", "[sample]") {
  SamplerParams params = greedy_params();
  params.repeat_penalty = 2.0f;
  params.frequency_penalty = 0.5f;
  params.presence_penalty = 1.0f;
  // A seen twice: (6 - 2 * 0.5 - 1) / 2 = 2. Divided first it would be 6 / 2 - 2 = 1.
  CHECK(generate(params, {6.0f, 1.9f, -16}, "AA", 1) == "A");
  CHECK(generate(params, {6.0f, 2.1f, -16}, "AA", 1) == "B");
  // A seen once: (-1 - 0.5 - 1) * 2 = -5.
  CHECK(generate(params, {-1.0f, -5.1f, -16}, "A", 1) == "A");
  CHECK(generate(params, {-1.0f, -4.9f, -16}, "A", 1) == "B");
}

TEST_CASE("sample/sampler: neutral penalties change nothing and a repeat penalty below 1 favours what was there", "[sample]") {
  SamplerParams params = greedy_params();
  CHECK(generate(params, {2.0f, 1.999f, -16}, "AAAA", 2) == "AA");
  params.repeat_penalty = 0.5f;
  CHECK(generate(params, {2.0f, 1.001f, -16}, "BBBB", 2) == "BB");  // 1.001 / 0.5 > 2
  CHECK(generate(params, {2.0f, 0.999f, -16}, "BBBB", 2) == "AA");
  CHECK(generate(params, {-1.0f, -1.5f, -16}, "BBBB", 2) == "BB");  // -1.5 * 0.5 > -1
}

TEST_CASE("sample/sampler: tokens outside the vocabulary do not disturb the penalties", "[sample]") {
  SamplerParams params = greedy_params();
  params.repeat_penalty = 1.5f;
  Sampler sampler = make(params);
  sampler.accept(std::vector<int32_t>{-5, kA, 3, std::numeric_limits<int32_t>::max()});
  CHECK(*sampler.sample(std::vector<float>{4, 3, -16}) == kB);
}

TEST_CASE("sample/sampler: the logits given are left as they are", "[sample]") {
  SamplerParams params;
  params.repeat_penalty = 2.0f;
  const std::vector<float> logits = {1, 2, 3}, copy = logits;
  Sampler sampler = make(params);
  sampler.accept(std::vector<int32_t>{0, 1, 2});
  REQUIRE(sampler.sample(logits).ok());
  CHECK(logits == copy);
}

TEST_CASE("sample/sampler: a parameter out of range is refused with its name and value and range", "[sample]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto with = [](auto member, auto value) {
    SamplerParams params;
    params.*member = value;
    return params;
  };
  CHECK(refusal(with(&SamplerParams::temperature, -0.1f)) == "temperature is -0.1: it must be a number of at least 0");
  CHECK(refusal(with(&SamplerParams::temperature, inf)) == "temperature is inf: it must be a number of at least 0");
  CHECK(refusal(with(&SamplerParams::top_k, -1)) == "top_k is -1: it must be at least 0 (0 turns it off)");
  CHECK(refusal(with(&SamplerParams::top_p, 1.5f)) == "top_p is 1.5: it must be from 0 to 1");
  CHECK(refusal(with(&SamplerParams::top_p, nan)) == "top_p is nan: it must be from 0 to 1");
  CHECK(refusal(with(&SamplerParams::min_p, -0.5f)) == "min_p is -0.5: it must be from 0 to 1");
  CHECK(refusal(with(&SamplerParams::repeat_penalty, -1.0f)) == "repeat_penalty is -1: it must be a number of at least 1e-06");
  CHECK(refusal(with(&SamplerParams::repeat_penalty, 0.0f)) == "repeat_penalty is 0: it must be a number of at least 1e-06");
  CHECK(refusal(with(&SamplerParams::frequency_penalty, nan)) == "frequency_penalty is nan: it must be a finite number");
  CHECK(refusal(with(&SamplerParams::presence_penalty, inf)) == "presence_penalty is inf: it must be a finite number");
  CHECK(refusal(with(&SamplerParams::repeat_last_n, -2)) == "repeat_last_n is -2: it must be from -1 (the whole context) to 1048576");
  CHECK(refusal(with(&SamplerParams::dry_multiplier, -1.0f)) == "dry_multiplier is -1: it must be a number of at least 0");
  CHECK(refusal(with(&SamplerParams::dry_base, 0.99f)) == "dry_base is 0.99: it must be a number of at least 1");
  CHECK(refusal(with(&SamplerParams::dry_allowed_length, 0)) == "dry_allowed_length is 0: it must be at least 1");
  CHECK(refusal(with(&SamplerParams::dry_penalty_last_n, 1048577)) ==
        "dry_penalty_last_n is 1048577: it must be from -1 (the whole context) to 1048576");
  CHECK(refusal(with(&SamplerParams::dry_breakers, std::vector<std::vector<int32_t>>{{1}, {}})) == "dry_breakers holds an empty sequence");
  SamplerParams blind;
  blind.dry_penalty_last_n = 0;
  CHECK(validate(blind).ok());
  blind.dry_multiplier = 0.5f;
  CHECK_THAT(refusal(blind), Catch::StartsWith("dry_penalty_last_n is 0, where DRY sees nothing"));
  CHECK(refusal(with(&SamplerParams::typical_p, 1.01f)) == "typical_p is 1.01: it must be from 0 to 1");
  CHECK(refusal(with(&SamplerParams::xtc_probability, -0.1f)) == "xtc_probability is -0.1: it must be from 0 to 1");
  CHECK(refusal(with(&SamplerParams::xtc_threshold, 0.51f)) == "xtc_threshold is 0.51: it must be from 0 to 0.5");
  CHECK(refusal(with(&SamplerParams::top_n_sigma, nan)) == "top_n_sigma is nan: it must be a number of at least 0");
  CHECK(refusal(with(&SamplerParams::mirostat_tau, 0.0f)) == "mirostat_tau is 0: it must be a number above 0");
  CHECK(refusal(with(&SamplerParams::mirostat_eta, -1.0f)) == "mirostat_eta is -1: it must be a number above 0");
  CHECK(refusal(with(&SamplerParams::mirostat_m, 0)) == "mirostat_m is 0: it must be at least 1");
  const auto bias = [](std::vector<LogitBias> entries) {
    SamplerParams params;
    params.logit_bias = std::move(entries);
    return params;
  };
  CHECK(refusal(bias({{1, 100.5f}})) == "logit_bias of token 1 is 100.5: it must be from -100 to 100");
  CHECK(refusal(bias({{1, nan}})) == "logit_bias of token 1 is nan: it must be from -100 to 100");
  CHECK(Sampler::create(bias({{3, 1.0f}}), 3, 256).error().text == "logit_bias: token 3 is not in the vocabulary of 3 tokens");
  CHECK_FALSE(Sampler::create(bias({{-1, 1.0f}}), 3, 256).ok());
  CHECK(Sampler::create(bias({{2, 1.0f}, {1, 1.0f}, {2, 3.0f}}), 3, 256).error().text == "logit_bias: token 2 is given twice");
  CHECK(validate(SamplerParams{}).ok());
}

TEST_CASE("sample/sampler: a bias is added before everything else and at temperature 0 too", "[sample]") {
  SamplerParams params = greedy_params();
  const std::vector<float> logits = {2.0f, 1.625f, -16};
  for (const LogitBias bias : {LogitBias{kA, -100}, LogitBias{kB, 5}}) {
    params.logit_bias = {bias};
    CHECK(generate(params, logits, "X", 4) == "BBBB");
  }
  // A 2 + 2 = 4, divided by 2: 2. Divided first it would be 3.
  params.logit_bias = {{kA, 2.0f}};
  params.repeat_penalty = 2.0f;
  CHECK(generate(params, {2.0f, 2.5f, -16}, "A", 1) == "B");
  CHECK(generate(params, {2.0f, 1.9f, -16}, "A", 1) == "A");
  // A masked token stays masked.
  params.logit_bias = {{kX, 100.0f}};
  CHECK(generate(params, {2.0f, 1.9f, -std::numeric_limits<float>::infinity()}, "B", 1) == "A");
}

// A, B, A: A is followed by B. A repeat of 1 at allowed length 1 costs 4 * 2^0.
TEST_CASE("sample/sampler: DRY acts behind the penalties and at temperature 0 too", "[sample]") {
  SamplerParams params = greedy_params();
  params.dry_multiplier = 4.0f;
  params.dry_base = 2.0f;
  params.dry_allowed_length = 1;
  CHECK(generate(params, {2.0f, 5.9f, -16}, "ABA", 1) == "A");
  CHECK(generate(params, {2.0f, 6.1f, -16}, "ABA", 1) == "B");
  params.repeat_penalty = 2.0f;  // A 2 / 2 = 1; B 9.8 / 2 - 4 = 0.9
  CHECK(generate(params, {2.0f, 9.8f, -16}, "ABA", 1) == "A");
  CHECK(generate(params, {2.0f, 10.2f, -16}, "ABA", 1) == "B");
}

// One number per token from XTC where two candidates are left, none where one is, and one from the draw. Seed 42 gives
// 0.742, 0.160, 0.279, 0.344, 0.038.
TEST_CASE("sample/sampler: XTC draws one number before the draw and only where there is a choice", "[sample]") {
  SamplerParams params = greedy_params();
  params.temperature = 1.0f;
  params.xtc_probability = 0.5f;
  params.xtc_threshold = 0.25f;
  // 0.742: not applied; 0.160 chooses A of two halves. 0.279: applied, A goes, 0.344 draws B. 0.038: applied.
  CHECK(generate(params, {2, 2, -16}, "X", 3) == "ABB");
  Sampler sampler = make(params);
  REQUIRE(sampler.sample(std::vector<float>{9, -40, -40}).ok());  // top-p leaves one: 0.742 is the draw's
  CHECK(*sampler.sample(std::vector<float>{2, 2, -16}) == kB);    // 0.160: applied
}

TEST_CASE("sample/sampler: mirostat at temperature 0 is greedy and leaves the state alone", "[sample]") {
  SamplerParams params = greedy_params();
  params.mirostat = Mirostat::kV2;
  Sampler sampler = make(params);
  const SamplerState before = sampler.state();
  CHECK(*sampler.sample(std::vector<float>{1, 3, 2}) == kB);
  CHECK(sampler.state() == before);
  CHECK(before.mirostat_mu == 10.0);
}

TEST_CASE("sample/sampler: a row of the wrong length is an error", "[sample]") {
  Sampler sampler = make(SamplerParams{});
  const auto id = sampler.sample(std::vector<float>(4));
  REQUIRE_FALSE(id.ok());
  CHECK(id.error().text == "a row of 4 logits was given to a sampler for 3 tokens");
  CHECK_FALSE(Sampler::create(SamplerParams{}, 0, 256).ok());
}
