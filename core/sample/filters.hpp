// The filters of the sampling chain, each a function that removes candidates from the list. A filter keeps the ascending
// id order, leaves at least one candidate, never changes a logit, and is a no-op at its "off" value.
// A new filter is one more function here and one more line in Sampler::sample.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "sample/candidates.hpp"

namespace minfer::sample {

// Buffers that are reused from call to call, so that sampling does not allocate.
struct FilterScratch {
  struct Ranked {
    double key;     // candidates are taken in ascending order of it, equal ones by id
    double weight;  // probability, not normalised
    int32_t id;
  };
  explicit FilterScratch(size_t n_vocab);
  std::vector<float> values;
  std::vector<Ranked> ranked;
};

// Fills `candidates` from a row of logits: all tokens whose logit reaches the k-th largest (ties with it all stay, so there
// may be more than k); k = 0 or k >= the number of tokens keeps all. A logit of -inf is a token that may not be chosen.
// `edits` replaces the logits of some ids (ascending, each within the row). One pass over the row, which is only read.
// Error: a logit that is NaN or +inf (names the token), or no token that may be chosen. `candidates` is unspecified then.
Status gather_top_k(std::span<const float> logits, std::span<const Candidate> edits, int32_t k, Candidates& candidates,
                    FilterScratch& scratch);

// Locally typical sampling (Meister et al., 2022): ranks the candidates by how far their surprise -ln p lies from its mean, the
// entropy, and keeps the nearest up to and with the first at which the cumulative probability exceeds p. p >= 1: off.
void typical_p(float p, Candidates& candidates, FilterScratch& scratch);

// Keeps the most probable candidates up to and with the first at which the cumulative probability exceeds p. Equal logits
// rank by id. p >= 1: off. p = 0 keeps the best one.
void top_p(float p, Candidates& candidates, FilterScratch& scratch);

// Keeps the candidates at least p times as probable as the best one: logit >= max + ln p. p <= 0: off.
void min_p(float p, Candidates& candidates);

// Exclude top choices (p-e-w, 2024): of the candidates whose probability reaches the threshold only the least likely stays (of
// equals that with the highest id). Whether it is applied to a token is decided by the caller, by a random number.
void xtc(float threshold, Candidates& candidates);

// Keeps logit >= max - n * sigma, sigma being the standard deviation of the candidates' logits. n <= 0: off.
void top_n_sigma(float n, Candidates& candidates);

float max_logit(const Candidates& candidates);

}  // namespace minfer::sample
