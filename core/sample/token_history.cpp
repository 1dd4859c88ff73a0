// A ring of tokens and a sorted list of counts that follows its newest part.
#include "sample/token_history.hpp"

#include <algorithm>

namespace minfer::sample {

TokenHistory::TokenHistory(size_t n_kept, size_t n_counted) : n_kept_(n_kept), n_counted_(std::min(n_counted, n_kept)) {
  ring_.reserve(n_kept_);
  counts_.reserve(n_counted_ + 1);
}

void TokenHistory::push(int32_t token) {
  if (n_kept_ == 0) return;
  if (n_counted_ > 0) {
    change(token, +1);
    if (size() >= n_counted_) change(back(n_counted_ - 1), -1);
  }
  if (ring_.size() < n_kept_) {
    ring_.push_back(token);
    return;
  }
  ring_[oldest_] = token;
  oldest_ = (oldest_ + 1) % n_kept_;
}

int32_t TokenHistory::back(size_t distance) const {
  const size_t index = oldest_ + ring_.size() - 1 - distance;
  return ring_[index < ring_.size() ? index : index - ring_.size()];
}

std::vector<int32_t> TokenHistory::tokens() const {
  std::vector<int32_t> tokens(ring_.size());
  for (size_t i = 0; i < tokens.size(); ++i) tokens[tokens.size() - 1 - i] = back(i);
  return tokens;
}

void TokenHistory::change(int32_t token, int32_t delta) {
  auto at = std::lower_bound(counts_.begin(), counts_.end(), token, [](const Count& entry, int32_t id) { return entry.token < id; });
  if (at == counts_.end() || at->token != token) at = counts_.insert(at, {token, 0});
  at->count += delta;
  if (at->count == 0) counts_.erase(at);
}

}  // namespace minfer::sample
