#include "text/vocabulary.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "golden.hpp"

using namespace minfer;
using Catch::Matchers::Contains;

namespace {
std::string refusal(const std::function<void(test::OwnedVocabulary&)>& change) {
  test::OwnedVocabulary source = test::byte_vocabulary();
  change(source);
  const auto result = Tokenizer::create(source.source());
  return result.ok() ? "(accepted)" : result.error().text;
}
}  // namespace

TEST_CASE("text/vocabulary: refuses other tokenizers by name", "[text]") {
  CHECK_THAT(refusal([](auto& s) { s.model = "llama"; }), Contains("tokenizer.ggml.model is 'llama'") && Contains("SentencePiece"));
  CHECK_THAT(refusal([](auto& s) { s.model = "frob"; }), Contains("tokenizer.ggml.model") && Contains("'frob'") && Contains("gpt2"));
  CHECK_THAT(refusal([](auto& s) { s.model = ""; }), Contains("tokenizer.ggml.model is missing"));
  CHECK_THAT(refusal([](auto& s) { s.pre = ""; }), Contains("tokenizer.ggml.pre is missing") && Contains("smollm"));
  CHECK_THAT(refusal([](auto& s) { s.pre = "frob"; }), Contains("tokenizer.ggml.pre is 'frob'") && Contains("qwen2"));
}

TEST_CASE("text/vocabulary: refuses token lists that disagree and names both counts", "[text]") {
  CHECK_THAT(refusal([](auto& s) { s.tokens.clear(); }), Contains("tokenizer.ggml.tokens is missing or empty"));
  CHECK_THAT(refusal([](auto& s) { s.token_types.clear(); }), Contains("tokenizer.ggml.token_type is missing"));
  CHECK_THAT(refusal([](auto& s) { s.token_types.resize(10); }), Contains("token_type has 10") && Contains("tokens has 257"));
  CHECK_THAT(refusal([](auto& s) { s.token_types[3] = 7; }), Contains("tokenizer.ggml.token_type[3] is 7"));
  CHECK_THAT(refusal([](auto& s) { s.token_types[3] = -1; }), Contains("tokenizer.ggml.token_type[3] is -1"));
}

TEST_CASE("text/vocabulary: refuses special ids outside the vocabulary and names both numbers", "[text]") {
  CHECK_THAT(refusal([](auto& s) { s.eos = 4294967295u; }), Contains("eos_token_id is 4294967295") && Contains("257 tokens"));
  CHECK_THAT(refusal([](auto& s) { s.eos = 257; }), Contains("tokenizer.ggml.eos_token_id is 257") && Contains("257 tokens"));
  CHECK_THAT(refusal([](auto& s) { s.bos = 300; }), Contains("tokenizer.ggml.bos_token_id is 300"));
  CHECK_THAT(refusal([](auto& s) { s.eot = 300; }), Contains("tokenizer.ggml.eot_token_id is 300"));
  CHECK_THAT(refusal([](auto& s) { s.eom = 300; }), Contains("tokenizer.ggml.eom_token_id is 300"));
  CHECK_THAT(refusal([](auto& s) { s.unk = 300; }), Contains("tokenizer.ggml.unknown_token_id is 300"));
  CHECK_THAT(refusal([](auto& s) { s.pad = 300; }), Contains("tokenizer.ggml.padding_token_id is 300"));
  CHECK_THAT(refusal([](auto& s) { s.add_bos = true; }), Contains("add_bos_token is true") && Contains("bos_token_id is missing"));
  CHECK(refusal([](auto& s) { s.eos = s.bos = 256; }) == "(accepted)");
}

TEST_CASE("text/vocabulary: refuses merges it cannot apply and quotes them", "[text]") {
  CHECK_THAT(refusal([](auto& s) { s.merges.clear(); }), Contains("tokenizer.ggml.merges is missing or empty"));
  CHECK_THAT(refusal([](auto& s) { s.merges.push_back("ab"); }), Contains("tokenizer.ggml.merges[1] is 'ab'") && Contains("space"));
  CHECK_THAT(refusal([](auto& s) { s.merges.push_back(""); }), Contains("tokenizer.ggml.merges[1] is ''"));
  CHECK_THAT(refusal([](auto& s) { s.merges.push_back(" b"); }), Contains("tokenizer.ggml.merges[1] is ' b'"));
  CHECK_THAT(refusal([](auto& s) { s.merges.push_back("b "); }), Contains("tokenizer.ggml.merges[1] is 'b '"));
  CHECK_THAT(refusal([](auto& s) { s.merges[0] = "zzz q"; }), Contains("merges[0] is 'zzz q'") && Contains("first piece"));
  CHECK_THAT(refusal([](auto& s) { s.merges[0] = "q zzz"; }), Contains("merges[0] is 'q zzz'") && Contains("second piece"));
  CHECK_THAT(refusal([](auto& s) { s.merges[0] = "a b c"; }), Contains("merges[0] is 'a b c'") && Contains("second piece"));
  CHECK_THAT(refusal([](auto& s) { s.merges[0] = "q z"; }), Contains("merges[0] is 'q z'") && Contains("merged piece"));
  const auto late = [](auto& s) {  // behind many that are in order
    s.merges.resize(40, s.merges[0]);
    s.merges.push_back("q z");
  };
  CHECK_THAT(refusal(late), Contains("merges[40] is 'q z'") && Contains("merged piece"));
}

TEST_CASE("text/vocabulary: every merge has its rank and its result", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  source.merges.clear();
  for (char c = 'a'; c <= 'z'; ++c) {
    source.add(std::string("q") + c, TokenType::kNormal);
    source.merges.push_back(std::string("q ") + c);
  }
  const auto v = Vocabulary::build(source.source());
  REQUIRE(v.ok());
  for (char c = 'a'; c <= 'z'; ++c) {
    const Vocabulary::Merge merge = v->merge('q', static_cast<TokenId>(c));
    CHECK(merge.rank == static_cast<uint32_t>(c - 'a'));
    CHECK(merge.result != kNoToken);
    if (merge.result != kNoToken) CHECK(v->bytes(merge.result) == std::string("q") + c);
  }
}

TEST_CASE("text/vocabulary: of a repeated token text the lowest id is used, of a repeated merge the first", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  const uint32_t second = source.add("ab", TokenType::kNormal);
  source.add("a", TokenType::kNormal);
  source.merges = {"a b", "b c", "a b"};
  source.add("bc", TokenType::kNormal);
  const auto v = Vocabulary::build(source.source());
  REQUIRE(v.ok());
  CHECK(v->find("ab") == 256);
  CHECK(v->byte_token('a') == 'a');
  CHECK(v->merge('a', 'b').result == 256);
  CHECK(v->merge('a', 'b').rank == 0);
  CHECK(v->merge('b', 'c').rank == 1);
  CHECK(v->merge('b', 'a').rank == Vocabulary::kNoMerge);
  CHECK(v->bytes(second) == "ab");
}

TEST_CASE("text/vocabulary: tokens become bytes by the alphabet, special ones keep their text", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  const uint32_t space = source.add("\xC4\xA0the", TokenType::kNormal);  // U+0120 stands for a space
  const uint32_t control = source.add(
      "<\xEF\xBD\x9C"
      "end>",
      TokenType::kControl);  // U+FF5C
  const uint32_t user = source.add("\xC4\xA0user", TokenType::kUserDefined);
  const uint32_t foreign = source.add("\xE5\xA5\xBD", TokenType::kNormal);  // not in the alphabet
  const auto v = Vocabulary::build(source.source());
  REQUIRE(v.ok());
  for (uint32_t b = 0; b < 256; ++b) CHECK(v->bytes(b) == std::string(1, static_cast<char>(b)));
  CHECK(v->bytes(space) == " the");
  CHECK(v->find(" the") == space);
  CHECK(v->bytes(control) ==
        "<\xEF\xBD\x9C"
        "end>");
  CHECK(v->bytes(user) == "\xC4\xA0user");
  CHECK(v->bytes(foreign) == "\xE5\xA5\xBD");
  CHECK(v->find("\xE5\xA5\xBD") == kNoToken);
  CHECK(std::vector<TokenId>(v->special_tokens().begin(), v->special_tokens().end()) == std::vector<TokenId>{control, user});
}
