// DRY ("don't repeat yourself", by p-e-w, 2024): a token that would continue a verbatim repeat is penalised, more so the longer the
// repeat: logit -= multiplier * base^(length - allowed_length). Knows tokens only; breakers in text are made into tokens elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sample/candidates.hpp"
#include "sample/params.hpp"
#include "sample/token_history.hpp"

namespace minfer::sample {

class Dry {
 public:
  // `last_n`: how many tokens of the history it looks back on, dry_penalty_last_n with -1 resolved.
  Dry(const SamplerParams& params, size_t last_n);

  // The tokens that would continue a repeat, ascending, each with what its logit loses. Valid until the next call, which
  // allocates nothing.
  std::span<const Candidate> penalties(const TokenHistory& history);

 private:
  size_t repeat_limit(std::span<const int32_t> reversed) const;
  bool is_breaker(int32_t token) const;

  double multiplier_, base_;
  size_t allowed_, last_n_, max_exponent_;
  std::vector<std::vector<int32_t>> breakers_;  // sorted: those that begin with one token lie together
  std::vector<int32_t> reversed_;               // the window, newest token first
  std::vector<uint32_t> lengths_;               // per distance: how long the end of the sequence was repeated there
  std::vector<Candidate> penalties_;
};

}  // namespace minfer::sample
