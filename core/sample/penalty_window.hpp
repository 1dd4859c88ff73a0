// The last n tokens of a sequence and how often each occurs among them: what the repetition penalties look at.
// Knows nothing of logits. No allocation after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace minfer::sample {

class PenaltyWindow {
 public:
  struct Count {
    int32_t token;
    int32_t count;
  };

  explicit PenaltyWindow(size_t n_tokens);

  // Appends a token; the oldest leaves when the window is full.
  void push(int32_t token);

  // The distinct tokens in ascending order. Valid until the next push.
  std::span<const Count> counts() const { return counts_; }

 private:
  void change(int32_t token, int32_t delta);

  size_t capacity_;
  size_t oldest_ = 0;
  std::vector<int32_t> ring_;
  std::vector<Count> counts_;
};

}  // namespace minfer::sample
