#include "text/tokenizer.hpp"

#include <algorithm>

#include "base/out_of_memory.hpp"
#include "base/utf8.hpp"
#include "text/bpe.hpp"
#include "text/nfc.hpp"

namespace minfer {
namespace {

bool touches(std::span<const TextRange> ascending, TextRange range) {
  const auto first = std::partition_point(ascending.begin(), ascending.end(), [&](const TextRange& r) { return r.end <= range.begin; });
  return first != ascending.end() && first->begin < range.end;
}

}  // namespace

Result<Tokenizer> Tokenizer::create(const VocabularySource& source) {
  MINFER_ASSIGN(Vocabulary vocabulary, Vocabulary::build(source));
  if (source.pre.empty())
    return invalid("tokenizer.ggml.pre is missing, expected one of: {}; convert the model again with a newer converter",
                   pretokenizer_names());
  const Pretokenizer* pretokenizer = find_pretokenizer(source.pre);
  if (!pretokenizer) return unsupported("tokenizer.ggml.pre is {}; known pre-tokenizers: {}", quote(source.pre), pretokenizer_names());
  return Tokenizer(std::move(vocabulary), *pretokenizer);
}

Tokenizer::Tokenizer(Vocabulary vocabulary, const Pretokenizer& pretokenizer)
    : vocabulary_(std::move(vocabulary)), pretokenizer_(&pretokenizer) {
  for (const TokenId id : vocabulary_.special_tokens())
    if (const std::string_view text = vocabulary_.bytes(id); !text.empty())
      special_by_first_byte_[static_cast<uint8_t>(text[0])].push_back(id);
  for (std::vector<TokenId>& ids : special_by_first_byte_)
    std::stable_sort(ids.begin(), ids.end(),
                     [this](TokenId a, TokenId b) { return vocabulary_.bytes(a).size() > vocabulary_.bytes(b).size(); });
}

TokenId Tokenizer::special_at(std::string_view text, size_t pos, const EncodeOptions& options) const {
  for (const TokenId id : special_by_first_byte_[static_cast<uint8_t>(text[pos])]) {
    const std::string_view token = vocabulary_.bytes(id);
    if (!text.substr(pos).starts_with(token)) continue;
    if (vocabulary_.type(id) == TokenType::kUserDefined) return id;
    if (options.parse_special && !touches(options.literal, {pos, pos + token.size()})) return id;
  }
  return kNoToken;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, const EncodeOptions& options, uint64_t* merge_steps) const {
  return catch_out_of_memory([&] { return encode_text(text, options, merge_steps); });
}

Result<std::vector<TokenId>> Tokenizer::encode_text(std::string_view text, const EncodeOptions& options, uint64_t* merge_steps) const {
  constexpr size_t kMaxBytes = (size_t{1} << 30) - 1;  // NFC at most triples it, positions in a piece have 32 bits
  if (text.size() > kMaxBytes) return invalid("the text has {} bytes; at most {} can be tokenized at once", text.size(), kMaxBytes);
  std::vector<TokenId> ids;
  BpeMerger merger(vocabulary_);
  std::string normalized;
  const auto encode_plain = [&](std::string_view plain) {
    if (pretokenizer_->normalize_nfc && may_change_under_nfc(plain)) {
      normalized.clear();
      append_nfc(plain, normalized);
      plain = normalized;
    }
    for (size_t begin = 0; begin < plain.size();) {
      const size_t end = pretokenizer_->piece_end(plain, begin);
      const std::string_view piece = plain.substr(begin, end - begin);
      const TokenId whole = pretokenizer_->whole_pieces ? vocabulary_.find(piece) : kNoToken;
      if (whole != kNoToken)
        ids.push_back(whole);
      else
        merger.encode(piece, ids);
      begin = end;
    }
  };
  size_t plain_begin = 0;
  for (size_t pos = 0; pos < text.size();) {
    const TokenId special = special_at(text, pos, options);
    if (special == kNoToken) {
      ++pos;
      continue;
    }
    encode_plain(text.substr(plain_begin, pos - plain_begin));
    ids.push_back(special);
    pos += vocabulary_.bytes(special).size();
    plain_begin = pos;
  }
  encode_plain(text.substr(plain_begin));
  if (merge_steps) *merge_steps += merger.steps();
  return ids;
}

Result<std::string_view> Tokenizer::token_bytes(TokenId id) const {
  if (id >= vocabulary_.size()) return invalid("token id {} is outside the vocabulary of {} tokens", id, vocabulary_.size());
  return vocabulary_.bytes(id);
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, ControlTokens control) const {
  std::string out;
  for (const TokenId id : ids) {
    MINFER_ASSIGN(const std::string_view bytes, token_bytes(id));
    if (control == ControlTokens::kShow || vocabulary_.type(id) != TokenType::kControl) out.append(bytes);
  }
  return out;
}

void Tokenizer::add_bos(std::vector<TokenId>& ids) const {
  if (!vocabulary_.add_bos() || (!ids.empty() && ids.front() == vocabulary_.bos())) return;
  ids.insert(ids.begin(), *vocabulary_.bos());
}

bool Tokenizer::is_end_of_generation(TokenId id) const { return std::ranges::binary_search(vocabulary_.end_of_generation(), id); }

}  // namespace minfer
