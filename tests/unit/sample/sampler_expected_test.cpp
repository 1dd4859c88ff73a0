// Runs of 24 tokens against tests/data/sample/expected.txt, which an independent program wrote (make_expected.py beside it).
#include <catch2/catch.hpp>
#include <sstream>

#include "sample/sampler.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::sample;

TEST_CASE("sample/sampler: seeded runs choose the tokens of the independent reference", "[sample]") {
  const auto lines = test::read_lines(test::data_dir() / "sample/expected.txt");
  REQUIRE(lines.size() == 12);
  for (size_t number = 0; number < lines.size(); ++number) {
    std::istringstream line(lines[number]);
    std::string name, word;
    SamplerParams params;
    line >> name >> params.seed >> params.temperature >> params.top_k >> params.top_p >> params.min_p >> params.repeat_penalty >>
        params.frequency_penalty >> params.presence_penalty >> params.repeat_last_n;
    CAPTURE(name);

    constexpr int32_t kVocab = 1000;
    SplitMix64 make(1000 + number);
    std::vector<float> row;
    for (int32_t i = 0; i < kVocab; ++i) row.push_back(static_cast<float>(make.next() >> 50) / 1024.0f - 8.0f);
    std::vector<int32_t> prompt(80);
    for (int32_t& token : prompt) token = static_cast<int32_t>(make.next() % kVocab);
    line >> word >> prompt[78] >> prompt[79] >> word;
    REQUIRE(word == "ids");

    auto sampler = Sampler::create(params, kVocab);
    REQUIRE(sampler.ok());
    sampler->accept(prompt);
    std::vector<int32_t> expected, chosen;
    for (int32_t id; line >> id;) {
      expected.push_back(id);
      const auto token = sampler->sample(row);
      REQUIRE(token.ok());
      chosen.push_back(*token);
      sampler->accept(*token);
    }
    CHECK(expected.size() == 24);
    CHECK(chosen == expected);
  }
}
