// Runs of 24 tokens against tests/data/sample/expected.txt, which an independent program wrote (make_expected.py beside it).
#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <sstream>

#include "sample/sampler.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::sample;

namespace {

// "7,12.0;8,12.5": numbers in groups.
std::vector<std::vector<double>> groups(const std::string& text) {
  std::vector<std::vector<double>> out;
  std::istringstream list(text);
  for (std::string group; std::getline(list, group, ';');) {
    out.emplace_back();
    std::istringstream numbers(group);
    for (std::string number; std::getline(numbers, number, ',');) out.back().push_back(std::stod(number));
  }
  return out;
}

void set(SamplerParams& p, const std::string& key, const std::string& value) {
  const std::map<std::string, float*> floats = {{"repeat_penalty", &p.repeat_penalty},
                                                {"frequency_penalty", &p.frequency_penalty},
                                                {"presence_penalty", &p.presence_penalty},
                                                {"dry_multiplier", &p.dry_multiplier},
                                                {"typical_p", &p.typical_p},
                                                {"top_p", &p.top_p},
                                                {"min_p", &p.min_p},
                                                {"xtc_probability", &p.xtc_probability},
                                                {"xtc_threshold", &p.xtc_threshold},
                                                {"top_n_sigma", &p.top_n_sigma},
                                                {"temperature", &p.temperature},
                                                {"mirostat_tau", &p.mirostat_tau},
                                                {"mirostat_eta", &p.mirostat_eta}};
  const std::map<std::string, int32_t*> integers = {{"top_k", &p.top_k},
                                                    {"repeat_last_n", &p.repeat_last_n},
                                                    {"dry_allowed_length", &p.dry_allowed_length},
                                                    {"dry_penalty_last_n", &p.dry_penalty_last_n},
                                                    {"mirostat_m", &p.mirostat_m}};
  if (floats.count(key)) {
    *floats.at(key) = std::stof(value);
  } else if (integers.count(key)) {
    *integers.at(key) = std::stoi(value);
  } else if (key == "seed") {
    p.seed = std::stoull(value);
  } else if (key == "mirostat") {
    p.mirostat = static_cast<Mirostat>(std::stoi(value));
  } else if (key == "logit_bias") {
    for (const auto& pair : groups(value)) p.logit_bias.push_back({static_cast<int32_t>(pair[0]), static_cast<float>(pair[1])});
  } else if (key == "dry_breakers") {
    for (const auto& breaker : groups(value)) p.dry_breakers.emplace_back(breaker.begin(), breaker.end());
  } else {
    FAIL("the test knows no parameter " << key);
  }
}

struct Case {
  std::string name;
  SamplerParams params;
  std::vector<float> row;
  std::vector<int32_t> prompt, expected;
};

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  for (const std::string& text : test::read_lines(test::data_dir() / "sample/expected.txt")) {
    Case c;
    std::istringstream line(text);
    std::string word;
    line >> c.name;
    while (line >> word && word != "prompt") set(c.params, word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
    SplitMix64 make(1000 + cases.size());
    for (int32_t i = 0; i < 1000; ++i) c.row.push_back(static_cast<float>(make.next() >> 50) / 1024.0f - 8.0f);
    c.prompt.resize(80);
    for (int32_t& token : c.prompt) token = static_cast<int32_t>(make.next() % 1000);
    line >> c.prompt[78] >> c.prompt[79] >> word;
    for (int32_t id; line >> id;) c.expected.push_back(id);
    cases.push_back(std::move(c));
  }
  return cases;
}

Sampler make(const Case& c) {
  auto sampler = Sampler::create(c.params, 1000, 4096);
  if (!sampler.ok()) FAIL(c.name << ": " << sampler.error().text);
  sampler->accept(c.prompt);
  return *std::move(sampler);
}

std::vector<int32_t> choose(Sampler& sampler, const std::vector<float>& row, size_t n) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < n; ++i) {
    const auto token = sampler.sample(row);
    if (!token.ok()) FAIL(token.error().text);
    ids.push_back(*token);
    sampler.accept(*token);
  }
  return ids;
}

}  // namespace

TEST_CASE("sample/sampler: seeded runs choose the tokens of the independent reference", "[sample]") {
  const std::vector<Case> cases = read_cases();
  REQUIRE(cases.size() == 28);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(c.expected.size() == 24);
    Sampler sampler = make(c);
    CHECK(choose(sampler, c.row, c.expected.size()) == c.expected);
  }
}

TEST_CASE("sample/sampler: a restored state goes on with the same tokens", "[sample]") {
  for (const Case& c : read_cases()) {
    CAPTURE(c.name);
    Sampler first = make(c);
    choose(first, c.row, 10);
    const SamplerState saved = first.state();
    CHECK(choose(first, c.row, 14) == std::vector<int32_t>(c.expected.begin() + 10, c.expected.end()));
    const SamplerState end = first.state();

    auto second = Sampler::create(c.params, 1000, 4096);
    REQUIRE(second.ok());
    second->accept(std::vector<int32_t>{1, 2, 3});  // whatever it held is replaced
    REQUIRE(second->restore(saved).ok());
    CHECK(second->state() == saved);
    CHECK(choose(*second, c.row, 14) == std::vector<int32_t>(c.expected.begin() + 10, c.expected.end()));
    CHECK(second->state() == end);
  }
}

TEST_CASE("sample/sampler: a state with a mu that is no number is refused and changes nothing", "[sample]") {
  auto sampler = Sampler::create({}, 1000, 64);
  REQUIRE(sampler.ok());
  SamplerState state = sampler->state();
  state.random = 7;
  state.mirostat_mu = std::numeric_limits<double>::quiet_NaN();
  const Status status = sampler->restore(state);
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().text, Catch::Contains("mirostat_mu nan"));
  CHECK(sampler->state().random == 42);
}
