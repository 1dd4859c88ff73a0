// Expected splits: worked out from the published patterns by hand.
#include "text/pretokenizers.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "support/support.hpp"

using namespace minfer;

namespace {
using Pieces = std::vector<std::string>;

Pieces split(std::string_view name, const std::string& text) {
  const Pretokenizer* row = find_pretokenizer(name);
  REQUIRE(row != nullptr);
  Pieces pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = row->piece_end(text, begin);
    REQUIRE(end > begin);
    REQUIRE(end <= text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}
}  // namespace

TEST_CASE("text/pretokenizers: qwen2 splits words, digits, symbols, contractions and white space", "[text]") {
  const auto qwen2 = [](const std::string& text) { return split("qwen2", text); };
  CHECK(qwen2("Hello world, 42!") == Pieces{"Hello", " world", ",", " ", "4", "2", "!"});
  CHECK(qwen2("it's I'VE they'll 'save") == Pieces{"it", "'s", " I", "'VE", " they", "'ll", " '", "save"});
  CHECK(qwen2("'save 'xyz") == Pieces{"'s", "ave", " '", "xyz"});
  CHECK(qwen2("(word _x\tTab") == Pieces{"(word", " _", "x", "\tTab"});
  CHECK(qwen2("a   b") == Pieces{"a", "  ", " b"});
  CHECK(qwen2("a  1") == Pieces{"a", " ", " ", "1"});
  CHECK(qwen2("a \n \n  b") == Pieces{"a", " \n \n", " ", " b"});
  CHECK(qwen2("end.\r\n\r\nNext") == Pieces{"end", ".\r\n\r\n", "Next"});
  CHECK(qwen2("\t\t!") == Pieces{"\t", "\t", "!"});
  CHECK(qwen2("a  ") == Pieces{"a", "  "});
  CHECK(qwen2("\nx") == Pieces{"\n", "x"});
  CHECK(qwen2(" \xC2\xA0\xE3\x80\x80x") == Pieces{" \xC2\xA0", "\xE3\x80\x80x"});
  CHECK(qwen2("\xE5\xA5\xBD\xE4\xBA\xBA\xE2\x85\xA0\xE3\x80\x82") == Pieces{"\xE5\xA5\xBD\xE4\xBA\xBA", "\xE2\x85\xA0", "\xE3\x80\x82"});
  CHECK(qwen2("a\xFF"
              "b \xFF\xFE") == Pieces{"a",
                                      "\xFF"
                                      "b",
                                      " \xFF\xFE"});
}

TEST_CASE("text/pretokenizers: smollm isolates digits, which are ends of text to white space", "[text]") {
  const auto smollm = [](const std::string& text) { return split("smollm", text); };
  CHECK(smollm("Hello world, 42!") == Pieces{"Hello", " world", ",", " ", "4", "2", "!"});
  CHECK(smollm("a  1") == Pieces{"a", "  ", "1"});
  CHECK(smollm("a  b") == Pieces{"a", " ", " b"});
  CHECK(smollm("it's IT'S") == Pieces{"it", "'s", " IT", "'", "S"});
  CHECK(smollm("(word\tx") == Pieces{"(", "word", "\t", "x"});
  CHECK(smollm("x.\n\ny") == Pieces{"x", ".", "\n", "\n", "y"});
  CHECK(smollm("x \n") == Pieces{"x", " \n"});
  CHECK(smollm("1'll") == Pieces{"1", "'ll"});
}

TEST_CASE("text/pretokenizers: llama-bpe takes numbers by threes and is otherwise like qwen2", "[text]") {
  const auto llama = [](const std::string& text) { return split("llama-bpe", text); };
  CHECK(llama("a 1234567 b") == Pieces{"a", " ", "123", "456", "7", " b"});
  CHECK(llama("12") == Pieces{"12"});
  CHECK(llama("\xD9\xA1\xD9\xA2\xD9\xA3\xD9\xA4"
              "5") == Pieces{"\xD9\xA1\xD9\xA2\xD9\xA3",
                             "\xD9\xA4"
                             "5"});
  CHECK(llama("it's I'VE (word .\r\n\n x") == Pieces{"it", "'s", " I", "'VE", " (", "word", " .\r\n\n", " x"});
}

TEST_CASE("text/pretokenizers: gpt-2 joins a space to the word or number or symbols behind it", "[text]") {
  const auto gpt2 = [](const std::string& text) { return split("gpt-2", text); };
  CHECK(gpt2("Hello world, 42!") == Pieces{"Hello", " world", ",", " 42", "!"});
  CHECK(gpt2("a  1  b   ") == Pieces{"a", " ", " 1", " ", " b", "   "});
  CHECK(gpt2("it's IT'S") == Pieces{"it", "'s", " IT", "'", "S"});
  CHECK(gpt2("x.\n\ny\tz") == Pieces{"x", ".", "\n", "\n", "y", "\t", "z"});
  CHECK(gpt2("1234567") == Pieces{"1234567"});
}

TEST_CASE("text/pretokenizers: white space is the Unicode property, not more and not less", "[text]") {
  // After a letter: a space character begins a piece of white space, any other sticks to the letter that follows or to symbols.
  for (const char* space : {"\xC2\x85", "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x8A", "\xE2\x80\xA8", "\xE2\x80\xA9",
                            "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80", "\x09", "\x0B", "\x0C"}) {
    const std::string s = space;
    std::string text = "!";
    text.append(s).append(s).append("!");
    CHECK(split("qwen2", text) == Pieces{"!", s, s, "!"});
  }
  for (const char* other : {"\x1C", "\x1F", "\xE1\xA0\x8E", "\xE2\x80\x8B", "\xEF\xBB\xBF"}) {
    std::string text = "!";
    text.append(other).append(other).append("!");
    CHECK(split("qwen2", text) == Pieces{text});
  }
}

TEST_CASE("text/pretokenizers: names are looked up exactly and listed for messages", "[text]") {
  REQUIRE(find_pretokenizer("qwen2"));
  CHECK(find_pretokenizer("qwen2")->normalize_nfc);
  REQUIRE(find_pretokenizer("smollm"));
  CHECK_FALSE(find_pretokenizer("smollm")->normalize_nfc);
  CHECK(find_pretokenizer("deepseek-r1-qwen") != nullptr);
  CHECK(find_pretokenizer("qwen") == nullptr);
  CHECK(find_pretokenizer("") == nullptr);
  for (const char* name : {"llama-bpe", "llama3", "llama-v3"}) {
    REQUIRE(find_pretokenizer(name));
    CHECK(find_pretokenizer(name)->whole_pieces);
    CHECK(find_pretokenizer(name)->add_bos);
    CHECK_FALSE(find_pretokenizer(name)->normalize_nfc);
  }
  REQUIRE(find_pretokenizer("gpt-2"));
  CHECK_FALSE(find_pretokenizer("gpt-2")->whole_pieces);
  CHECK_FALSE(find_pretokenizer("gpt-2")->add_bos);
  CHECK(pretokenizer_names() == "qwen2, deepseek-r1-qwen, llama-bpe, llama3, llama-v3, smollm, gpt-2");
}
