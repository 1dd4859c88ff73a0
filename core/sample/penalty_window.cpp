// A ring of tokens and a sorted list of counts that follows it.
#include "sample/penalty_window.hpp"

#include <algorithm>

namespace minfer::sample {

PenaltyWindow::PenaltyWindow(size_t n_tokens) : capacity_(n_tokens) {
  ring_.reserve(n_tokens);
  counts_.reserve(n_tokens + 1);
}

void PenaltyWindow::push(int32_t token) {
  if (capacity_ == 0) return;
  change(token, +1);
  if (ring_.size() < capacity_) {
    ring_.push_back(token);
    return;
  }
  change(ring_[oldest_], -1);
  ring_[oldest_] = token;
  oldest_ = (oldest_ + 1) % capacity_;
}

void PenaltyWindow::change(int32_t token, int32_t delta) {
  auto at = std::lower_bound(counts_.begin(), counts_.end(), token, [](const Count& entry, int32_t id) { return entry.token < id; });
  if (at == counts_.end() || at->token != token) at = counts_.insert(at, {token, 0});
  at->count += delta;
  if (at->count == 0) counts_.erase(at);
}

}  // namespace minfer::sample
