// Perplexity of a token sequence in the usual protocol: chunks of n_ctx tokens, each from an empty cache; the logits at
// positions n_ctx/2 .. n_ctx-2 are scored on the token behind each; the tail is dropped.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/session.hpp"

namespace minfer {

struct Perplexity {
  uint32_t n_ctx = 0;
  uint64_t n_tokens = 0;
  uint64_t n_scored = 0;
  double mean_nll = 0;  // natural logarithm
  std::vector<double> chunk_mean_nll;
};

// log(sum(exp(row))), in double.
double log_sum_exp(std::span<const float> row);

// n_ctx even and at least 4; the session's context must hold it. on_chunk(done, total) after each chunk.
Result<Perplexity> perplexity(Session& session, std::span<const int32_t> tokens, uint32_t n_ctx, uint32_t n_batch,
                              const std::function<void(size_t done, size_t total)>& on_chunk);

}  // namespace minfer
