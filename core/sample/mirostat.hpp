// Mirostat (Basu et al., 2020): draws such that the surprise of the chosen tokens, -log2 p, stays near tau. A running bound mu follows
// what was seen. The temperature has no part in it. Knows nothing of vocabularies but their size.
#pragma once

#include "sample/candidates.hpp"
#include "sample/params.hpp"
#include "sample/random.hpp"

namespace minfer::sample {

// Where mu starts.
inline double initial_mu(const SamplerParams& params) { return 2.0 * static_cast<double>(params.mirostat_tau); }

// Cuts the list and draws from what is left, in descending order of probability, with one random number; moves mu. The list is in that
// order afterwards.
//   version 1: Zipf's exponent s is estimated from the first m candidates; the k best stay, k = (e * 2^mu / (1 - n_vocab^-e))^(1/s)
//              with e = s - 1
//   version 2: those with -log2 p <= mu stay
// At least one stays, and all that tie with the k-th. Then mu -= eta * (surprise of the chosen among what was left - tau).
int32_t draw_mirostat(const SamplerParams& params, size_t n_vocab, Candidates& candidates, SplitMix64& random, double& mu);

}  // namespace minfer::sample
