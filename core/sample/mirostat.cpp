#include "sample/mirostat.hpp"

#include <algorithm>
#include <cmath>

#include "sample/math.hpp"

namespace minfer::sample {
namespace {

constexpr double kLn2 = 0.6931471805599453;

double total_weight(const Candidates& candidates, double max) {
  double total = 0.0;
  for (const Candidate& candidate : candidates) total += exp(candidate.logit - max);
  return total;
}

// Zipf's exponent by least squares over the first candidates, which are in order: 1 where it is undefined or not positive.
double zipf_exponent(const Candidates& ordered, size_t n) {
  double products = 0.0, squares = 0.0;
  for (size_t i = 0; i + 1 < n; ++i) {
    const double t = log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    const double b = static_cast<double>(ordered[i].logit) - ordered[i + 1].logit;  // ln (p_i / p_(i+1))
    products += t * b;
    squares += t * t;
  }
  return squares > 0.0 && products > 0.0 ? products / squares : 1.0;
}

double zipf_k(double s, double mu, double n_vocab) {
  const double e = s - 1.0;
  const double denominator = 1.0 - exp(-e * log(n_vocab));
  if (std::abs(denominator) < 1e-12) return 1.0;
  const double k = exp(log(e * exp(mu * kLn2) / denominator) / s);
  return std::isfinite(k) && k >= 1.0 ? k : 1.0;
}

void cut_v1(const SamplerParams& params, size_t n_vocab, double mu, Candidates& candidates) {
  const size_t n = std::min(static_cast<size_t>(params.mirostat_m), candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(n), candidates.end(), ranks_before);
  const double k = zipf_k(zipf_exponent(candidates, n), mu, static_cast<double>(n_vocab));
  if (k < static_cast<double>(candidates.size())) {
    const auto kth = candidates.begin() + static_cast<ptrdiff_t>(k) - 1;
    std::nth_element(candidates.begin(), kth, candidates.end(), ranks_before);
    std::erase_if(candidates, [least = kth->logit](const Candidate& candidate) { return candidate.logit < least; });
  }
  std::sort(candidates.begin(), candidates.end(), ranks_before);
}

void cut_v2(double mu, double max, Candidates& candidates) {
  const double log_total = log(total_weight(candidates, max));
  const Candidate best = *std::min_element(candidates.begin(), candidates.end(), ranks_before);
  std::erase_if(candidates, [&](const Candidate& candidate) { return (log_total - (candidate.logit - max)) / kLn2 > mu; });
  if (candidates.empty()) candidates.push_back(best);
  std::sort(candidates.begin(), candidates.end(), ranks_before);
}

}  // namespace

int32_t draw_mirostat(const SamplerParams& params, size_t n_vocab, Candidates& candidates, SplitMix64& random, double& mu) {
  const double max = std::min_element(candidates.begin(), candidates.end(), ranks_before)->logit;
  if (params.mirostat == Mirostat::kV1)
    cut_v1(params, n_vocab, mu, candidates);
  else
    cut_v2(mu, max, candidates);

  const double total = total_weight(candidates, max);
  const double target = static_cast<double>(random.uniform()) * total;
  size_t chosen = 0;
  double cumulative = exp(candidates[0].logit - max);
  while (cumulative < target && chosen + 1 < candidates.size()) cumulative += exp(candidates[++chosen].logit - max);
  const double surprise = (log(total) - (candidates[chosen].logit - max)) / kLn2;
  mu -= static_cast<double>(params.mirostat_eta) * (surprise - static_cast<double>(params.mirostat_tau));
  return candidates[chosen].id;
}

}  // namespace minfer::sample
