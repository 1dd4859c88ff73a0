// The last tokens of a sequence, and how often each occurs among the newest of them: what penalties and DRY look back on.
// Knows nothing of logits. No allocation after construction but in tokens().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace minfer::sample {

class TokenHistory {
 public:
  struct Count {
    int32_t token;
    int32_t count;
  };

  // Keeps n_kept tokens and counts the newest n_counted of them (at most n_kept).
  TokenHistory(size_t n_kept, size_t n_counted);

  // Appends a token; the oldest leaves when the history is full.
  void push(int32_t token);

  size_t size() const { return ring_.size(); }
  // The token at that distance from the newest, which is 0. distance < size().
  int32_t back(size_t distance) const;

  // The distinct tokens among the newest n_counted, in ascending order. Valid until the next push.
  std::span<const Count> counts() const { return counts_; }

  // All that is kept, oldest first.
  std::vector<int32_t> tokens() const;

 private:
  void change(int32_t token, int32_t delta);

  size_t n_kept_, n_counted_;
  size_t oldest_ = 0;
  std::vector<int32_t> ring_;
  std::vector<Count> counts_;
};

}  // namespace minfer::sample
