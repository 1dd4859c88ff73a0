// Byte-pair merging of one piece of text: repeatedly joins the neighbours of the lowest rank, the leftmost first.
// Sennrich et al. 2016; ranks over bytes as in GPT-2. Knows nothing of pre-tokenizers and special tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/vocabulary.hpp"

namespace minfer {

// Working memory, kept between pieces, and what the work was. One per thread; empty at first.
class BpeMerger {
 public:
  explicit BpeMerger(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // Appends the ids of the piece to `out`. Bytes without a token are dropped. Time is n log n in the piece's length;
  // piece.size() < 2^32. The vocabulary must outlive the merger.
  void encode(std::string_view piece, std::vector<TokenId>& out);

  // Pairs looked at since construction: the measure of work, free of timing noise.
  uint64_t steps() const { return steps_; }

 private:
  struct Symbol {
    TokenId id;
    uint32_t previous, next;  // neighbours that are still there; the ends point at kEnd
    Vocabulary::Merge merge;  // with the next symbol
  };

  void encode_short(std::string_view piece, std::vector<TokenId>& out);
  void encode_long(std::string_view piece, std::vector<TokenId>& out);

  const Vocabulary& vocabulary_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> queue_;  // min-heap of rank << 32 | position; an entry whose symbol has another rank now is stale
  uint64_t steps_ = 0;
};

}  // namespace minfer
