#include "text/vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/utf8.hpp"
#include "base/utf8_decode.hpp"
#include "text/pretokenizers.hpp"

namespace minfer {
namespace {

// GPT-2 writes every byte as one printable character: itself where Latin-1 has a visible one, else U+0100 upwards in order.
constexpr uint32_t kAlphabetSize = 0x100 + 68;
constexpr uint16_t kNotInAlphabet = 0xFFFF;

constexpr std::array<uint16_t, kAlphabetSize> kByteOfCharacter = [] {
  std::array<uint16_t, kAlphabetSize> bytes{};
  bytes.fill(kNotInAlphabet);
  uint32_t next = 0x100;
  for (uint16_t b = 0; b < 256; ++b) {
    const bool visible = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    bytes[visible ? b : next++] = b;
  }
  return bytes;
}();

// Appends the bytes that a text in the byte alphabet stands for. False (and nothing appended) when it is not in the alphabet.
bool append_decoded(std::string_view text, std::string& out) {
  const size_t begin = out.size();
  out.resize(begin + text.size());  // a character stands for one byte
  char* end = out.data() + begin;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = utf8_at(text, pos);
    if (c.code_point >= kAlphabetSize || kByteOfCharacter[c.code_point] == kNotInAlphabet) {
      out.resize(begin);
      return false;
    }
    *end++ = static_cast<char>(kByteOfCharacter[c.code_point]);
    pos += c.size;
  }
  out.resize(static_cast<size_t>(end - out.data()));
  return true;
}

uint32_t hash_bytes(std::string_view bytes) {
  uint64_t h = bytes.size() * 0x9E3779B97F4A7C15u;
  const auto mix = [&h](uint64_t word) {
    h = (h ^ word) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  };
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
    bytes.remove_prefix(8);
  }
  uint64_t word = 0;
  for (const char c : bytes) word = word << 8 | static_cast<uint8_t>(c);
  mix(word);
  return static_cast<uint32_t>(h);
}

// A table of many tokens is larger than the nearer caches: tokens are asked for this many entries ahead, merges in blocks of as many.
constexpr size_t kAhead = 16;

// Ids, ranks and offsets are 32 bits wide and tables are twice as large as what they hold.
constexpr size_t kMaxEntries = size_t{1} << 28;

}  // namespace

Result<Vocabulary> Vocabulary::build(const VocabularySource& source) {
  if (is_sentencepiece(source.model))
    return unsupported("tokenizer.ggml.model is '{}' (a SentencePiece vocabulary); only byte-level BPE ('gpt2') is supported",
                       source.model);
  if (source.model.empty()) return invalid("tokenizer.ggml.model is missing; expected 'gpt2' (byte-level BPE)");
  if (source.model != "gpt2")
    return unsupported("tokenizer.ggml.model is {}; only byte-level BPE ('gpt2') is supported", quote(source.model));
  Vocabulary vocabulary;
  MINFER_TRY(vocabulary.add_tokens(source));
  MINFER_TRY(vocabulary.add_special_ids(source));
  MINFER_TRY(vocabulary.add_merges(source.merges));
  return vocabulary;
}

Status Vocabulary::add_tokens(const VocabularySource& source) {
  const std::vector<std::string_view>& tokens = source.tokens;
  if (tokens.empty()) return invalid("tokenizer.ggml.tokens is missing or empty: the file holds no vocabulary");
  if (tokens.size() > kMaxEntries)
    return invalid("tokenizer.ggml.tokens has {} entries; at most {} are supported", tokens.size(), kMaxEntries);
  if (source.token_types.empty()) return invalid("tokenizer.ggml.token_type is missing or empty: control tokens cannot be told from text");
  if (source.token_types.size() != tokens.size())
    return invalid("tokenizer.ggml.token_type has {} entries, tokenizer.ggml.tokens has {}; they must match", source.token_types.size(),
                   tokens.size());
  uint64_t n_bytes = 0;
  for (const std::string_view token : tokens) n_bytes += token.size();
  if (n_bytes >= UINT32_MAX) return invalid("tokenizer.ggml.tokens holds {} bytes of text; less than 4 GiB are supported", n_bytes);

  bytes_.reserve(n_bytes);
  offsets_.reserve(tokens.size() + 1);
  offsets_.push_back(0);
  types_.reserve(tokens.size());
  std::vector<TokenSlot> by_merges;
  by_merges.reserve(tokens.size());
  for (TokenId id = 0; id < tokens.size(); ++id) {
    const int64_t type = source.token_types[id];
    if (type < 1 || type > 6) return invalid("tokenizer.ggml.token_type[{}] is {}; token types are 1 to 6", id, type);
    types_.push_back(static_cast<TokenType>(type));
    // Only normal tokens are written in the byte alphabet and made by merges; the others are their own text.
    const bool decoded = types_[id] == TokenType::kNormal && append_decoded(tokens[id], bytes_);
    if (!decoded) bytes_.append(tokens[id]);
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    if (types_[id] == TokenType::kControl || types_[id] == TokenType::kUserDefined) special_.push_back(id);
    if (decoded) by_merges.push_back({hash_bytes(bytes(id)), id});
  }
  token_slots_.resize(std::bit_ceil(tokens.size() * 2));
  const size_t mask = token_slots_.size() - 1;
  for (size_t i = 0; i < by_merges.size(); ++i) {
    if (i + kAhead < by_merges.size()) prefetch_slot(by_merges[i + kAhead].hash);
    const auto [hash, id] = by_merges[i];
    size_t slot = hash & mask;
    while (token_slots_[slot].id != kNoToken && !(token_slots_[slot].hash == hash && bytes(token_slots_[slot].id) == bytes(id)))
      slot = (slot + 1) & mask;
    if (token_slots_[slot].id == kNoToken) token_slots_[slot] = {hash, id};
  }
  for (size_t b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    byte_tokens_[b] = find(std::string_view(&byte, 1));
  }
  return {};
}

TokenId Vocabulary::find(std::string_view wanted) const { return find(wanted, hash_bytes(wanted)); }

TokenId Vocabulary::find(std::string_view wanted, uint32_t hash) const {
  const size_t mask = token_slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const TokenSlot& slot = token_slots_[i];
    if (slot.id == kNoToken) return kNoToken;
    if (slot.hash == hash && bytes(slot.id) == wanted) return slot.id;
  }
}

Status Vocabulary::add_special_ids(const VocabularySource& source) {
  const struct {
    std::string_view key;
    std::optional<uint32_t> id;
  } ids[] = {{"bos", source.bos}, {"eos", source.eos},     {"eot", source.eot},
             {"eom", source.eom}, {"unknown", source.unk}, {"padding", source.pad}};
  for (const auto& [key, id] : ids)
    if (id && *id >= size()) return invalid("tokenizer.ggml.{}_token_id is {}, but the vocabulary has {} tokens", key, *id, size());
  if (source.add_bos && !source.bos) return invalid("tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is missing");
  bos_ = source.bos;
  eos_ = source.eos;
  add_bos_ = source.add_bos;

  for (const auto& id : {source.eos, source.eot, source.eom})
    if (id) end_of_generation_.push_back(*id);
  const auto im_end = std::find(source.tokens.begin(), source.tokens.end(), "<|im_end|>");
  if (im_end != source.tokens.end()) end_of_generation_.push_back(static_cast<TokenId>(im_end - source.tokens.begin()));
  std::sort(end_of_generation_.begin(), end_of_generation_.end());
  end_of_generation_.erase(std::unique(end_of_generation_.begin(), end_of_generation_.end()), end_of_generation_.end());
  return {};
}

Status Vocabulary::add_merges(const std::vector<std::string_view>& merges) {
  if (merges.empty()) return invalid("tokenizer.ggml.merges is missing or empty: byte-level BPE needs it");
  if (merges.size() > kMaxEntries)
    return invalid("tokenizer.ggml.merges has {} entries; at most {} are supported", merges.size(), kMaxEntries);
  merges_.resize(std::bit_ceil(merges.size() + merges.size() / 2 + 1));  // never full: a search ends at a gap
  merge_mask_ = merges_.size() - 1;
  for (size_t rank = 0; rank < merges.size(); rank += kAhead)
    MINFER_TRY(add_merge_block(std::span(merges).subspan(rank, std::min(kAhead, merges.size() - rank)), static_cast<uint32_t>(rank)));
  return {};
}

Status Vocabulary::add_merge_block(std::span<const std::string_view> merges, uint32_t first_rank) {
  const auto wrong = [&](size_t i, std::string_view what) {
    return invalid("tokenizer.ggml.merges[{}] is {}{}", first_rank + i, quote(merges[i]), what);
  };
  constexpr size_t kPieces = 3;  // left, right, both
  constexpr std::string_view kMissing[kPieces] = {": its first piece is not in tokenizer.ggml.tokens",
                                                  ": its second piece is not in tokenizer.ggml.tokens",
                                                  ": the merged piece is not in tokenizer.ggml.tokens"};
  struct Piece {
    size_t begin, end;  // in `decoded`, which still grows
    uint32_t hash;
  };
  std::string decoded;
  const auto bytes_of = [&decoded](const Piece& piece) { return std::string_view(decoded).substr(piece.begin, piece.end - piece.begin); };
  std::array<std::array<Piece, kPieces>, kAhead> pieces;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string_view text = merges[i];
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == text.size())
      return wrong(i, "; expected two pieces with a space between");
    const size_t begin = decoded.size();
    if (!append_decoded(text.substr(0, space), decoded)) return wrong(i, kMissing[0]);
    const size_t cut = decoded.size();
    if (!append_decoded(text.substr(space + 1), decoded)) return wrong(i, kMissing[1]);
    pieces[i] = {{{begin, cut, 0}, {cut, decoded.size(), 0}, {begin, decoded.size(), 0}}};
    for (Piece& piece : pieces[i]) {
      piece.hash = hash_bytes(bytes_of(piece));
      prefetch_slot(piece.hash);
    }
  }
  std::array<MergeSlot, kAhead> found;
  for (size_t i = 0; i < merges.size(); ++i) {
    std::array<TokenId, kPieces> ids;
    for (size_t k = 0; k < kPieces; ++k) {
      ids[k] = find(bytes_of(pieces[i][k]), pieces[i][k].hash);
      if (ids[k] == kNoToken) return wrong(i, kMissing[k]);
    }
    found[i] = {uint64_t{ids[0]} << 32 | ids[1], {first_rank + static_cast<uint32_t>(i), ids[2]}};
    __builtin_prefetch(&merges_[hash_pair(found[i].key) & merge_mask_]);
  }
  for (const MergeSlot& merge : std::span(found).first(merges.size())) {
    size_t slot = hash_pair(merge.key) & merge_mask_;
    while (merges_[slot].key != kEmptyKey && merges_[slot].key != merge.key) slot = (slot + 1) & merge_mask_;
    if (merges_[slot].key == kEmptyKey) merges_[slot] = merge;  // of a repeated merge the first counts
  }
  return {};
}

}  // namespace minfer
