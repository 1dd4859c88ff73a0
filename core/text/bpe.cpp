#include "text/bpe.hpp"

#include <algorithm>
#include <functional>

namespace minfer {
namespace {
// Up to this length looking at all pairs each time is faster than a heap. Most words are shorter.
constexpr size_t kShortPiece = 24;
constexpr uint32_t kEnd = UINT32_MAX;
}  // namespace

void BpeMerger::encode(std::string_view piece, std::vector<TokenId>& out) {
  if (piece.size() <= kShortPiece)
    encode_short(piece, out);
  else
    encode_long(piece, out);
}

void BpeMerger::encode_short(std::string_view piece, std::vector<TokenId>& out) {
  TokenId ids[kShortPiece];
  Vocabulary::Merge merges[kShortPiece];  // [i]: of ids[i] and ids[i + 1]
  size_t n = piece.size();
  for (size_t i = 0; i < n; ++i) ids[i] = vocabulary_.byte_token(static_cast<uint8_t>(piece[i]));
  for (size_t i = 0; i + 1 < n; ++i) merges[i] = vocabulary_.merge(ids[i], ids[i + 1]);
  while (n > 1) {
    steps_ += n - 1;
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].rank == Vocabulary::kNoMerge) break;
    ids[best] = merges[best].result;
    std::copy(ids + best + 2, ids + n, ids + best + 1);
    if (best + 2 < n) std::copy(merges + best + 2, merges + n - 1, merges + best + 1);
    --n;
    if (best > 0) merges[best - 1] = vocabulary_.merge(ids[best - 1], ids[best]);
    if (best + 1 < n) merges[best] = vocabulary_.merge(ids[best], ids[best + 1]);
  }
  for (size_t i = 0; i < n; ++i)
    if (ids[i] != kNoToken) out.push_back(ids[i]);
}

void BpeMerger::encode_long(std::string_view piece, std::vector<TokenId>& out) {
  const auto n = static_cast<uint32_t>(piece.size());
  symbols_.resize(n);
  queue_.clear();
  for (uint32_t i = 0; i < n; ++i)
    symbols_[i] = {vocabulary_.byte_token(static_cast<uint8_t>(piece[i])), i == 0 ? kEnd : i - 1, i + 1 == n ? kEnd : i + 1, {}};
  // Looks up the pair that begins at symbol i; true when it merges.
  const auto update = [this](uint32_t i) {
    Symbol& symbol = symbols_[i];
    symbol.merge = symbol.next == kEnd ? Vocabulary::Merge{} : vocabulary_.merge(symbol.id, symbols_[symbol.next].id);
    if (symbol.merge.rank == Vocabulary::kNoMerge) return false;
    queue_.push_back(uint64_t{symbol.merge.rank} << 32 | i);
    return true;
  };
  for (uint32_t i = 0; i < n; ++i) update(i);
  std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
  steps_ += n;

  while (!queue_.empty()) {
    ++steps_;
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const auto rank = static_cast<uint32_t>(queue_.back() >> 32);
    const auto i = static_cast<uint32_t>(queue_.back());
    queue_.pop_back();
    Symbol& left = symbols_[i];
    if (left.merge.rank != rank) continue;  // a rank names its two tokens, so an equal rank means an equal pair
    Symbol& right = symbols_[left.next];
    left.id = left.merge.result;
    left.next = right.next;
    right.merge = {};
    if (left.next != kEnd) symbols_[left.next].previous = i;
    for (const uint32_t changed : {i, left.previous})
      if (changed != kEnd && update(changed)) std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }
  for (uint32_t i = 0; i != kEnd && n > 0; i = symbols_[i].next)
    if (symbols_[i].id != kNoToken) out.push_back(symbols_[i].id);
}

}  // namespace minfer
