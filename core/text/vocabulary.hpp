// The vocabulary of a byte-level BPE tokenizer ("gpt2" in model files): token bytes, token types, merge ranks, special ids.
// Built from plain lists, so it knows nothing of file formats; its messages name the metadata keys the lists come from.
// Byte alphabet and merges: Radford et al. 2019 (GPT-2). Token types: the GGUF specification, tokenizer.ggml.token_type.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace minfer {

using TokenId = uint32_t;
inline constexpr TokenId kNoToken = UINT32_MAX;

enum class TokenType : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// What a model file says. The views are read during Vocabulary::build only.
struct VocabularySource {
  std::string_view model;                                // tokenizer.ggml.model
  std::string_view pre;                                  // tokenizer.ggml.pre, empty when missing
  std::vector<std::string_view> tokens;                  // tokenizer.ggml.tokens, in the byte alphabet of GPT-2
  std::vector<int64_t> token_types;                      // tokenizer.ggml.token_type, one per token
  std::vector<std::string_view> merges;                  // tokenizer.ggml.merges, "left right", best first
  std::optional<uint32_t> bos, eos, eot, eom, unk, pad;  // tokenizer.ggml.*_token_id
  bool add_bos = false;                                  // tokenizer.ggml.add_bos_token
};

// Immutable, safe to share between threads. Owns its bytes: nothing points into the source.
class Vocabulary {
 public:
  // Errors name the metadata key, the values found and what is expected. Repeated token texts are allowed: the lowest id is used.
  static Result<Vocabulary> build(const VocabularySource& source);

  size_t size() const { return types_.size(); }
  TokenType type(TokenId id) const { return types_[id]; }
  // The bytes that a token stands for; id < size(). Valid as long as the vocabulary lives.
  std::string_view bytes(TokenId id) const { return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]); }

  // The normal token with exactly these bytes, or kNoToken.
  TokenId find(std::string_view bytes) const;
  // The token of one byte, or kNoToken: some vocabularies lack bytes that never occur in text.
  TokenId byte_token(uint8_t byte) const { return byte_tokens_[byte]; }

  struct Merge {
    uint32_t rank = kNoMerge;  // lower merges first
    TokenId result = kNoToken;
  };
  static constexpr uint32_t kNoMerge = UINT32_MAX;
  // What becomes of two neighbours; rank kNoMerge when they do not merge.
  Merge merge(TokenId left, TokenId right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    for (size_t i = hash_pair(key);; ++i) {
      const MergeSlot& slot = merges_[i & merge_mask_];
      if (slot.key == key) return slot.merge;
      if (slot.key == kEmptyKey) return {};
    }
  }

  // Ids of control and user-defined tokens, ascending.
  std::span<const TokenId> special_tokens() const { return special_; }
  // eos, eot, eom and <|im_end|>, as far as there are any. Ascending.
  std::span<const TokenId> end_of_generation() const { return end_of_generation_; }
  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  bool add_bos() const { return add_bos_; }

 private:
  struct TokenSlot {
    uint32_t hash;
    TokenId id = kNoToken;
  };
  struct MergeSlot {
    uint64_t key = kEmptyKey;
    Merge merge;
  };
  static constexpr uint64_t kEmptyKey = UINT64_MAX;
  static size_t hash_pair(uint64_t key) {
    key *= 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(key ^ (key >> 32));
  }

  Status add_tokens(const VocabularySource& source);
  Status add_special_ids(const VocabularySource& source);
  Status add_merges(const std::vector<std::string_view>& merges);
  // At most kAhead merges: their look-ups wait for memory together.
  Status add_merge_block(std::span<const std::string_view> merges, uint32_t first_rank);

  // `hash`: of the bytes.
  TokenId find(std::string_view bytes, uint32_t hash) const;
  void prefetch_slot(uint32_t hash) const { __builtin_prefetch(&token_slots_[hash & (token_slots_.size() - 1)]); }

  std::string bytes_;              // all tokens one after the other
  std::vector<uint32_t> offsets_;  // size() + 1 entries into bytes_
  std::vector<TokenType> types_;
  std::vector<TokenSlot> token_slots_;  // open addressing, a power of two, at most half full; normal tokens only
  std::vector<MergeSlot> merges_;       // open addressing, a power of two, at most two thirds full; key = left << 32 | right
  uint64_t merge_mask_ = 0;
  std::array<TokenId, 256> byte_tokens_{};
  std::vector<TokenId> special_, end_of_generation_;
  std::optional<TokenId> bos_, eos_;
  bool add_bos_ = false;
};

}  // namespace minfer
