// Vocabularies for tests and the golden files of tests/data/tokenizer.
#pragma once

#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace minfer::test {

// A VocabularySource with the strings it points into. Change the members, then call source().
struct OwnedVocabulary {
  std::string model = "gpt2", pre = "qwen2";
  std::vector<std::string> tokens, merges;
  std::vector<int64_t> token_types;
  std::optional<uint32_t> bos, eos, eot, eom, unk, pad;
  bool add_bos = false;

  VocabularySource source() const;                  // views into this object
  uint32_t add(std::string token, TokenType type);  // its id
};

// tests/data/tokenizer/NAME.vocabulary.json
OwnedVocabulary read_vocabulary(const std::string& name);

// One token per byte value (id = byte), no control tokens, one merge: "a b" -> id 256. BOS and EOS unset.
OwnedVocabulary byte_vocabulary();

// Checks every line of tests/data/tokenizer/NAME.jsonl: ids with special tokens off and on, and what they decode to.
// `nfc`: the model normalises. Returns the number of lines.
size_t check_golden(const Tokenizer& tokenizer, const std::string& name, bool nfc);

}  // namespace minfer::test
