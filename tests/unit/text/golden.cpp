#include "golden.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/support.hpp"

namespace minfer::test {
using nlohmann::json;

VocabularySource OwnedVocabulary::source() const {
  VocabularySource source;
  source.model = model;
  source.pre = pre;
  source.tokens.assign(tokens.begin(), tokens.end());
  source.merges.assign(merges.begin(), merges.end());
  source.token_types = token_types;
  source.bos = bos;
  source.eos = eos;
  source.eot = eot;
  source.eom = eom;
  source.unk = unk;
  source.pad = pad;
  source.add_bos = add_bos;
  return source;
}

uint32_t OwnedVocabulary::add(std::string token, TokenType type) {
  tokens.push_back(std::move(token));
  token_types.push_back(static_cast<int64_t>(type));
  return static_cast<uint32_t>(tokens.size() - 1);
}

OwnedVocabulary read_vocabulary(const std::string& name) {
  const json data = json::parse(read_file(data_dir() / "tokenizer" / (name + ".vocabulary.json")));
  OwnedVocabulary v;
  v.model = data.at("model");
  v.pre = data.at("pre");
  v.tokens = data.at("tokens").get<std::vector<std::string>>();
  v.merges = data.at("merges").get<std::vector<std::string>>();
  v.token_types = data.at("token_types").get<std::vector<int64_t>>();
  v.bos = data.at("bos").get<uint32_t>();
  v.eos = data.at("eos").get<uint32_t>();
  v.pad = data.at("pad").get<uint32_t>();
  v.add_bos = data.at("add_bos");
  return v;
}

OwnedVocabulary byte_vocabulary() {
  // The tiny vocabularies begin with the 256 bytes in order.
  OwnedVocabulary v = read_vocabulary("tiny_qwen2");
  v.tokens.resize(256);
  v.token_types.resize(256);
  v.merges = {"a b"};
  v.bos = v.eos = v.pad = std::nullopt;
  v.add("ab", TokenType::kNormal);
  return v;
}

size_t check_golden(const Tokenizer& tokenizer, const std::string& name, bool nfc) {
  const auto lines = read_lines(data_dir() / "tokenizer" / (name + ".jsonl"));
  for (const std::string& line : lines) {
    const json data = json::parse(line);
    INFO(name << " " << data.at("id"));
    const auto field = [&](const char* key, const json& same_as) { return data.contains(key) ? data.at(key) : same_as; };
    const json ids_off = data.at("ids_off"), ids_on = field("ids_on", ids_off);
    const std::string text = from_hex(data.at("hex").get<std::string>());
    const json& expected = nfc && data.contains("nfc") ? data.at("nfc") : data;

    const auto off = tokenizer.encode(text);
    REQUIRE(off.ok());
    CHECK(*off == expected.at("ids_off").get<std::vector<TokenId>>());
    const auto on = tokenizer.encode(text, {.parse_special = true});
    REQUIRE(on.ok());
    CHECK(*on == (expected.contains("ids_on") ? expected.at("ids_on") : expected.at("ids_off")).get<std::vector<TokenId>>());

    const auto decoded = [&](const json& ids, ControlTokens control) {
      return *tokenizer.decode(ids.get<std::vector<TokenId>>(), control);
    };
    const json hex_off = field("decoded_hex", data.at("hex"));
    const json hex_on = field("decoded_on_hex", hex_off);
    const json hex_hidden = field("decoded_on_skip_control_hex", hex_on);
    CHECK(decoded(ids_off, ControlTokens::kShow) == from_hex(hex_off.get<std::string>()));
    CHECK(decoded(ids_on, ControlTokens::kShow) == from_hex(hex_on.get<std::string>()));
    CHECK(decoded(ids_on, ControlTokens::kHide) == from_hex(hex_hidden.get<std::string>()));
  }
  return lines.size();
}

}  // namespace minfer::test
