// The table of pre-tokenizers: how text is cut into pieces before byte pairs are merged, by the name a model file gives
// (tokenizer.ggml.pre). The one core file that knows names of model families; it knows nothing of vocabularies.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace minfer {

struct Pretokenizer {
  std::string_view name;
  bool normalize_nfc = false;  // the family's reference tokenizer normalises text to NFC first
  bool whole_pieces = false;   // a piece that is a token is taken as it is, whatever merges lead to ("ignore_merges" in tokenizer.json)
  bool add_bos = false;        // BOS goes in front where the file does not say (tokenizer.ggml.add_bos_token)
  // End of the piece that begins at text[begin]; begin < text.size() and the result is > begin. The ends of `text` are ends
  // of text to the pattern: it never looks across a special token. Bytes that are not UTF-8 are neither letter, number nor space.
  size_t (*piece_end)(std::string_view text, size_t begin) = nullptr;
};

// Null when the name is unknown. The row is static.
const Pretokenizer* find_pretokenizer(std::string_view name);

// All names, separated by commas: for messages.
std::string pretokenizer_names();

// Whether tokenizer.ggml.model names a SentencePiece vocabulary, which is another kind of tokenizer.
bool is_sentencepiece(std::string_view tokenizer_model);

}  // namespace minfer
