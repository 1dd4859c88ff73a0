// Chooses the next token from a row of logits. The order of the chain: logit bias, penalties, DRY; then greedy, or top-k, typical,
// top-p, min-p, XTC, top-n-sigma and a draw, by temperature or mirostat. Knows nothing of models, tokenizers or text.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "sample/candidates.hpp"
#include "sample/dry.hpp"
#include "sample/filters.hpp"
#include "sample/params.hpp"
#include "sample/random.hpp"
#include "sample/token_history.hpp"

namespace minfer::sample {

// Everything that changes from token to token: a sampler of the same parameters that is given it goes on with the same tokens.
struct SamplerState {
  uint64_t random = 0;
  double mirostat_mu = 0.0;
  std::vector<int32_t> history;  // oldest first
  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

// One sequence's sampler. Not thread-safe; one per sequence. After create(), sample and accept allocate nothing unless they fail.
class Sampler {
 public:
  // Validates the parameters. n_ctx is what a window of -1 stands for.
  static Result<Sampler> create(const SamplerParams& params, int32_t n_vocab, uint32_t n_ctx);

  // Tells the sampler of a token that is now part of the sequence, from the prompt or generated: sample() does not do so.
  void accept(int32_t token) { history_.push(token); }
  // The same for many, in order: the prompt, of which the last ones count.
  void accept(std::span<const int32_t> tokens);

  // The next token for a row of n_vocab logits. The row is only read. Error: wrong length, NaN or +inf in the row, or
  // nothing but -inf; the state is what it was then.
  Result<int32_t> sample(std::span<const float> logits);

  SamplerState state() const;
  // Of a longer history only the last tokens count. Error: mu is no finite number; nothing has changed then.
  Status restore(const SamplerState& state);

 private:
  Sampler(const SamplerParams& params, int32_t n_vocab, size_t n_penalties, size_t n_dry);
  void collect_edits(std::span<const float> logits);
  bool penalises() const;
  float penalised(float logit, int32_t count) const;
  void subtract(int32_t token, float penalty, std::span<const float> logits);
  int32_t draw();

  SamplerParams params_;
  size_t n_vocab_;
  SplitMix64 random_;
  double mirostat_mu_;
  size_t n_penalties_, n_kept_;  // the part of the history that the penalties see, and all of it
  TokenHistory history_;
  Dry dry_;
  Candidates edits_;       // ids whose logit differs from the row's, ascending
  Candidates candidates_;  // ascending ids
  std::vector<double> weights_;
  FilterScratch scratch_;
};

}  // namespace minfer::sample
