#include "text/tokenizer.hpp"

#include <catch2/catch.hpp>

#include "golden.hpp"

using namespace minfer;
using Catch::Matchers::Contains;
using Ids = std::vector<TokenId>;

namespace {
Tokenizer make(const test::OwnedVocabulary& source) {
  auto tokenizer = Tokenizer::create(source.source());
  if (!tokenizer.ok()) FAIL(tokenizer.error().text);
  return std::move(tokenizer).value();
}
}  // namespace

TEST_CASE("text/tokenizer: the 307-token qwen2 vocabulary gives the golden ids", "[text]") {
  CHECK(test::check_golden(make(test::read_vocabulary("tiny_qwen2")), "tiny_qwen2", true) == 347);
}

TEST_CASE("text/tokenizer: llama-bpe and gpt-2 give the ids of the tokenizers package", "[text]") {
  CHECK(test::check_golden(make(test::read_vocabulary("tiny_llama_bpe")), "tiny_llama_bpe", false) == 494);
  CHECK(test::check_golden(make(test::read_vocabulary("tiny_gpt2")), "tiny_gpt2", false) == 494);
}

TEST_CASE("text/tokenizer: the 307-token smollm vocabulary gives the golden ids", "[text]") {
  CHECK(test::check_golden(make(test::read_vocabulary("tiny_smollm")), "tiny_smollm", false) == 347);
}

TEST_CASE("text/tokenizer: special tokens match leftmost, then longest, control tokens only when asked for", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  const TokenId shorter = source.add("<|a", TokenType::kControl);
  const TokenId longer = source.add("<|a|>", TokenType::kControl);
  const TokenId user = source.add("|>x", TokenType::kUserDefined);
  source.add("<|u|>", TokenType::kUnused);
  source.add("", TokenType::kControl);  // an empty text matches nowhere
  const Tokenizer tokenizer = make(source);
  const EncodeOptions on{.parse_special = true};
  CHECK(*tokenizer.encode("<|a|>x", on) == Ids{longer, 'x'});
  CHECK(*tokenizer.encode("<<|a|", on) == Ids{'<', shorter, '|'});
  CHECK(*tokenizer.encode("<|a|>x") == Ids{'<', '|', 'a', user});
  CHECK(*tokenizer.encode("<|u|>", on) == Ids{'<', '|', 'u', '|', '>'});
  CHECK(*tokenizer.encode("a<|a|>b", on) == Ids{'a', longer, 'b'});  // no merge across a special token
  CHECK(*tokenizer.encode("", on) == Ids{});
}

TEST_CASE("text/tokenizer: control tokens inside or across a literal stretch are ordinary text", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  const TokenId end = source.add("<E>", TokenType::kControl);
  const TokenId user = source.add("<U>", TokenType::kUserDefined);
  const Tokenizer tokenizer = make(source);
  const std::string text = "<E><E><U><E>";
  const auto encode = [&](std::vector<TextRange> literal) { return *tokenizer.encode(text, {.parse_special = true, .literal = literal}); };
  CHECK(encode({}) == Ids{end, end, user, end});
  CHECK(encode({{3, 9}}) == Ids{end, '<', 'E', '>', user, end});
  CHECK(encode({{0, 1}, {11, 12}}) == Ids{'<', 'E', '>', end, user, '<', 'E', '>'});
  CHECK(encode({{3, 3}}) == Ids{end, end, user, end});
}

TEST_CASE("text/tokenizer: decode shows or hides control tokens and refuses foreign ids", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  const TokenId control = source.add("<E>", TokenType::kControl);
  const TokenId user = source.add("<U>", TokenType::kUserDefined);
  const Tokenizer tokenizer = make(source);
  const Ids ids{'x', control, user, 0xFF};
  CHECK(*tokenizer.decode(ids) == "x<E><U>\xFF");
  CHECK(*tokenizer.decode(ids, ControlTokens::kHide) == "x<U>\xFF");
  CHECK(*tokenizer.token_bytes(control) == "<E>");
  const auto refused = tokenizer.decode(Ids{'x', 259});
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().text, Contains("259") && Contains("259 tokens"));
  CHECK_FALSE(tokenizer.token_bytes(kNoToken).ok());
}

TEST_CASE("text/tokenizer: BOS is put in front once, and only when the model asks for it", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  source.bos = source.add("<B>", TokenType::kControl);
  Ids ids{'x'};
  make(source).add_bos(ids);
  CHECK(ids == Ids{'x'});
  source.add_bos = true;
  const Tokenizer tokenizer = make(source);
  tokenizer.add_bos(ids);
  CHECK(ids == Ids{*source.bos, 'x'});
  tokenizer.add_bos(ids);
  CHECK(ids == Ids{*source.bos, 'x'});
  Ids none;
  tokenizer.add_bos(none);
  CHECK(none == Ids{*source.bos});
}

TEST_CASE("text/tokenizer: generation ends at eos, eot, eom and the end of a ChatML turn", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  CHECK_FALSE(make(source).is_end_of_generation('x'));
  source.eos = source.add("<eos>", TokenType::kControl);
  source.eot = source.add("<eot>", TokenType::kControl);
  source.eom = source.add("<eom>", TokenType::kControl);
  const TokenId other = source.add("<other>", TokenType::kControl);
  const TokenId im_end = source.add("<|im_end|>", TokenType::kControl);
  const Tokenizer tokenizer = make(source);
  for (const TokenId id : {*source.eos, *source.eot, *source.eom, im_end}) CHECK(tokenizer.is_end_of_generation(id));
  for (const TokenId id : {other, TokenId{'x'}, kNoToken}) CHECK_FALSE(tokenizer.is_end_of_generation(id));
}
