// Text to token ids and back: special tokens are cut out first, then each stretch between them is normalised, cut into
// pieces by the model's pre-tokenizer and merged. Any bytes are legal input; bytes that are not UTF-8 survive the round trip.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/pretokenizers.hpp"
#include "text/vocabulary.hpp"

namespace minfer {

// Bytes begin to end - 1 of a text.
struct TextRange {
  size_t begin, end;
};

struct EncodeOptions {
  // Recognise control tokens such as <|im_start|>. Off: their text is ordinary text. User-defined tokens are recognised always.
  bool parse_special = false;
  // With parse_special: stretches in which control tokens are ordinary text all the same, such as what a user typed into a
  // message that a chat template wraps. Ascending, not overlapping. A token that only touches such a stretch is not recognised.
  std::span<const TextRange> literal = {};
};

enum class ControlTokens { kHide, kShow };

// Immutable after create; all members may be called from several threads at once.
class Tokenizer {
 public:
  static Result<Tokenizer> create(const VocabularySource& source);

  // Ids of the text, without BOS. Fails only for texts of 1 GiB and more. *merge_steps, if given, grows by BpeMerger::steps().
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options = {}, uint64_t* merge_steps = nullptr) const;

  // The bytes of all ids, one after the other. An id outside the vocabulary is an error.
  Result<std::string> decode(std::span<const TokenId> ids, ControlTokens control = ControlTokens::kShow) const;
  // The bytes of one token, for streaming; valid as long as the tokenizer lives.
  Result<std::string_view> token_bytes(TokenId id) const;

  // Puts BOS in front when the model asks for it (tokenizer.ggml.add_bos_token) and the ids do not begin with it already.
  void add_bos(std::vector<TokenId>& ids) const;
  bool is_end_of_generation(TokenId id) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  Tokenizer(Vocabulary vocabulary, const Pretokenizer& pretokenizer);
  Result<std::vector<TokenId>> encode_text(std::string_view text, const EncodeOptions& options, uint64_t* merge_steps) const;
  TokenId special_at(std::string_view text, size_t pos, const EncodeOptions& options) const;

  Vocabulary vocabulary_;
  const Pretokenizer* pretokenizer_;
  std::array<std::vector<TokenId>, 256> special_by_first_byte_;  // longest first, then lowest id
};

}  // namespace minfer
