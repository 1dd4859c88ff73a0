// Chooses the next token from a row of logits: penalties, then greedy or top-k, top-p, min-p, temperature.
// Knows nothing of models, tokenizers or text.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "sample/candidates.hpp"
#include "sample/filters.hpp"
#include "sample/penalty_window.hpp"
#include "sample/random.hpp"

namespace minfer::sample {

struct SamplerParams {
  uint64_t seed = 42;
  float temperature = 0.8f;        // >= 0; below 1e-6: the most probable token, no random number is drawn
  int32_t top_k = 40;              // >= 0; 0: off
  float top_p = 0.95f;             // 0 to 1; 1: off
  float min_p = 0.0f;              // 0 to 1; 0: off
  float repeat_penalty = 1.1f;     // >= 0; 1: off, and below 1 it has no effect
  float frequency_penalty = 0.0f;  // finite; 0: off
  float presence_penalty = 0.0f;   // finite; 0: off
  int32_t repeat_last_n = 64;      // tokens that the penalties look back on, prompt included; 0: no penalties
};

inline constexpr int32_t kMaxRepeatLastN = 1 << 20;

// Ok, or an error that names the parameter, its value and the values allowed.
Status validate(const SamplerParams& params);

// One sequence's sampler: its random numbers and its penalty window. Not thread-safe; one per sequence.
// After create(), no call allocates unless it fails.
class Sampler {
 public:
  // Validates the parameters.
  static Result<Sampler> create(const SamplerParams& params, int32_t n_vocab);

  // Tells the sampler of a token that is now part of the sequence, from the prompt or generated: sample() does not do so.
  void accept(int32_t token);
  // The same for many, in order: the prompt, of which the last repeat_last_n tokens count.
  void accept(std::span<const int32_t> tokens);

  // The next token for a row of n_vocab logits. The row is only read. Error: wrong length, NaN or +inf in the row, or
  // nothing but -inf; the random numbers are where they were then.
  Result<int32_t> sample(std::span<const float> logits);

 private:
  Sampler(const SamplerParams& params, int32_t n_vocab);
  void apply_penalties(std::span<const float> logits);
  int32_t draw();

  SamplerParams params_;
  size_t n_vocab_;
  SplitMix64 random_;
  PenaltyWindow window_;
  Candidates edits_;       // ids whose logit differs from the row's, ascending
  Candidates candidates_;  // ascending ids
  std::vector<double> weights_;
  FilterScratch scratch_;
};

}  // namespace minfer::sample
