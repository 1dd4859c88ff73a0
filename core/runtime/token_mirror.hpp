// The tokens that stand in a sequence's KV, in order, and the bytes they stand for. Pure bookkeeping: the owner of the sequence keeps both
// in step. Leading tokens without bytes of their own (a BOS that the tokenizer put in front) count as tokens only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minfer {

class TokenMirror {
 public:
  std::span<const int32_t> tokens() const { return tokens_; }
  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
  std::string_view bytes() const { return bytes_; }

  void push(int32_t token, std::string_view bytes);
  void truncate(uint32_t n_tokens);
  void erase(uint32_t first, uint32_t count);

  // Bytes of the first n tokens.
  size_t byte_end(uint32_t n_tokens) const { return n_tokens == 0 ? 0 : ends_[n_tokens - 1]; }
  // How many leading tokens lie within the first n_bytes.
  uint32_t tokens_within(size_t n_bytes) const;

  // The mirror ought to hold what `wanted` holds and has a stretch of `n_bytes` too many somewhere: the last place where that stretch may
  // begin and end between tokens, so that what is left and `wanted` agree as far as both go. False where there is none.
  bool find_surplus(std::string_view wanted, size_t n_bytes, uint32_t* first, uint32_t* count) const;

 private:
  std::vector<int32_t> tokens_;
  std::vector<size_t> ends_;  // by token: where its bytes end
  std::string bytes_;
};

// Length of the common beginning.
size_t common_prefix(std::string_view a, std::string_view b);

}  // namespace minfer
