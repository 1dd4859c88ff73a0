// Rows of logits over a token sequence, one by one.
#pragma once

#include <functional>
#include <span>

#include "engine/session.hpp"

namespace minfer {

// Runs tokens through sequence 0, which must be empty, in chunks of n_batch; calls on_row for the last n_last positions, ascending.
Status for_last_logits(Session& session, std::span<const int32_t> tokens, uint32_t n_last, uint32_t n_batch,
                       const std::function<Status(uint32_t position, std::span<const float> row)>& on_row);

struct TokenLogit {
  uint32_t token;
  float logit;
};
// The k largest, best first; equal ones by id. A NaN is an error.
Result<std::vector<TokenLogit>> top_logits(std::span<const float> row, uint32_t k);

}  // namespace minfer
