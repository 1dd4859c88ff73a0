// The sampling chain: see sampler.hpp. The filters themselves are in filters.cpp.
#include "sample/sampler.hpp"

#include <cmath>

#include "sample/math.hpp"

namespace minfer::sample {
namespace {

constexpr float kGreedyBelow = 1e-6f;

Status check_range(std::string_view name, float value, float low, float high) {
  if (value >= low && value <= high) return {};
  return invalid("{} is {:g}: it must be from {:g} to {:g}", name, value, low, high);
}

Status check_not_negative(std::string_view name, float value) {
  if (std::isfinite(value) && value >= 0.0f) return {};
  return invalid("{} is {:g}: it must be a number of at least 0", name, value);
}

Status check_finite(std::string_view name, float value) {
  if (std::isfinite(value)) return {};
  return invalid("{} is {:g}: it must be a finite number", name, value);
}

}  // namespace

Status validate(const SamplerParams& params) {
  MINFER_TRY(check_not_negative("temperature", params.temperature));
  if (params.top_k < 0) return invalid("top_k is {}: it must be at least 0 (0 turns it off)", params.top_k);
  MINFER_TRY(check_range("top_p", params.top_p, 0.0f, 1.0f));
  MINFER_TRY(check_range("min_p", params.min_p, 0.0f, 1.0f));
  MINFER_TRY(check_not_negative("repeat_penalty", params.repeat_penalty));
  MINFER_TRY(check_finite("frequency_penalty", params.frequency_penalty));
  MINFER_TRY(check_finite("presence_penalty", params.presence_penalty));
  if (params.repeat_last_n < 0 || params.repeat_last_n > kMaxRepeatLastN)
    return invalid("repeat_last_n is {}: it must be from 0 (no penalties) to {}; n_ctx covers the whole context", params.repeat_last_n,
                   kMaxRepeatLastN);
  return {};
}

Result<Sampler> Sampler::create(const SamplerParams& params, int32_t n_vocab) {
  MINFER_TRY(validate(params));
  if (n_vocab < 1) return invalid("a sampler needs a vocabulary of at least 1 token, not {}", n_vocab);
  return Sampler(params, n_vocab);
}

Sampler::Sampler(const SamplerParams& params, int32_t n_vocab)
    : params_(params),
      n_vocab_(static_cast<size_t>(n_vocab)),
      random_(params.seed),
      window_(static_cast<size_t>(params.repeat_last_n)),
      scratch_(n_vocab_) {
  edits_.reserve(static_cast<size_t>(params.repeat_last_n));
  candidates_.reserve(n_vocab_);
  weights_.reserve(n_vocab_);
}

void Sampler::accept(int32_t token) { window_.push(token); }

void Sampler::accept(std::span<const int32_t> tokens) {
  for (int32_t token : tokens) window_.push(token);
}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
  if (logits.size() != n_vocab_) return internal_error("a row of {} logits was given to a sampler for {} tokens", logits.size(), n_vocab_);
  edits_.clear();
  apply_penalties(logits);
  const bool greedy = params_.temperature < kGreedyBelow;
  MINFER_TRY(gather_top_k(logits, edits_, greedy ? 1 : params_.top_k, candidates_, scratch_));
  if (greedy) return candidates_.front().id;  // all that tie for the maximum are here: the lowest id
  top_p(params_.top_p, candidates_, scratch_);
  min_p(params_.min_p, candidates_);
  return draw();
}

// Per distinct token of the window, with count c:
//   l -= c * frequency_penalty;  l -= presence_penalty;  l = l > 0 ? l / repeat_penalty : l * repeat_penalty
void Sampler::apply_penalties(std::span<const float> logits) {
  const float repeat = params_.repeat_penalty > 1.0f ? params_.repeat_penalty : 1.0f;
  if (repeat == 1.0f && params_.frequency_penalty == 0.0f && params_.presence_penalty == 0.0f) return;
  for (const PenaltyWindow::Count& entry : window_.counts()) {
    if (entry.token < 0 || static_cast<size_t>(entry.token) >= logits.size()) continue;
    float logit = logits[static_cast<size_t>(entry.token)];
    logit -= static_cast<float>(entry.count) * params_.frequency_penalty;
    logit -= params_.presence_penalty;
    logit = logit > 0.0f ? logit / repeat : logit * repeat;
    edits_.push_back({entry.token, logit});
  }
}

// One number r in [0, 1): the first candidate, ids ascending, at which the running share of the probabilities
// e^((logit - max) / temperature) reaches r; the last one if rounding leaves none.
int32_t Sampler::draw() {
  const double max = max_logit(candidates_), temperature = params_.temperature;
  weights_.clear();
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += weights_.emplace_back(exp((candidate.logit - max) / temperature));
  const double target = static_cast<double>(random_.uniform()) * total;
  double cumulative = 0.0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    cumulative += weights_[i];
    if (cumulative >= target) return candidates_[i].id;
  }
  return candidates_.back().id;
}

}  // namespace minfer::sample
