// The sampling chain: see sampler.hpp. The steps themselves are in filters.cpp, dry.cpp and mirostat.cpp.
#include "sample/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/math.hpp"
#include "sample/mirostat.hpp"

namespace minfer::sample {
namespace {

constexpr float kGreedyBelow = 1e-6f;

bool by_token(const LogitBias& a, const LogitBias& b) { return a.token < b.token; }

}  // namespace

Result<Sampler> Sampler::create(const SamplerParams& params, int32_t n_vocab, uint32_t n_ctx) {
  MINFER_TRY(validate(params));
  if (n_vocab < 1) return invalid("a sampler needs a vocabulary of at least 1 token, not {}", n_vocab);
  SamplerParams sorted = params;
  std::sort(sorted.logit_bias.begin(), sorted.logit_bias.end(), by_token);
  for (size_t i = 0; i < sorted.logit_bias.size(); ++i) {
    const int32_t token = sorted.logit_bias[i].token;
    if (token < 0 || token >= n_vocab) return invalid("logit_bias: token {} is not in the vocabulary of {} tokens", token, n_vocab);
    if (i > 0 && sorted.logit_bias[i - 1].token == token) return invalid("logit_bias: token {} is given twice", token);
  }
  const auto window = [&](int32_t last_n) { return last_n < 0 ? size_t{n_ctx} : static_cast<size_t>(last_n); };
  const size_t n_dry = params.dry_multiplier > 0.0f ? window(params.dry_penalty_last_n) : 0;
  return Sampler(sorted, n_vocab, window(params.repeat_last_n), n_dry);
}

Sampler::Sampler(const SamplerParams& params, int32_t n_vocab, size_t n_penalties, size_t n_dry)
    : params_(params),
      n_vocab_(static_cast<size_t>(n_vocab)),
      random_(params.seed),
      mirostat_mu_(initial_mu(params)),
      n_penalties_(n_penalties),
      n_kept_(std::max(n_penalties, n_dry)),
      history_(n_kept_, n_penalties_),
      dry_(params, n_dry),
      scratch_(n_vocab_) {
  edits_.reserve(std::min(n_vocab_, params_.logit_bias.size() + n_penalties + n_dry));
  candidates_.reserve(n_vocab_);
  weights_.reserve(n_vocab_);
}

void Sampler::accept(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens.last(std::min(tokens.size(), n_kept_))) history_.push(token);
}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
  if (logits.size() != n_vocab_) return internal_error("a row of {} logits was given to a sampler for {} tokens", logits.size(), n_vocab_);
  collect_edits(logits);
  const bool greedy = params_.temperature < kGreedyBelow;
  MINFER_TRY(gather_top_k(logits, edits_, greedy ? 1 : params_.top_k, candidates_, scratch_));
  if (greedy) return candidates_.front().id;  // all that tie for the maximum are here: the lowest id
  typical_p(params_.typical_p, candidates_, scratch_);
  top_p(params_.top_p, candidates_, scratch_);
  min_p(params_.min_p, candidates_);
  if (params_.xtc_probability > 0.0f && candidates_.size() > 1 && random_.uniform() <= params_.xtc_probability)
    xtc(params_.xtc_threshold, candidates_);
  top_n_sigma(params_.top_n_sigma, candidates_);
  if (params_.mirostat != Mirostat::kOff) return draw_mirostat(params_, n_vocab_, candidates_, random_, mirostat_mu_);
  return draw();
}

SamplerState Sampler::state() const { return {random_.state(), mirostat_mu_, history_.tokens()}; }

Status Sampler::restore(const SamplerState& state) {
  if (!std::isfinite(state.mirostat_mu)) return invalid("a sampler's state holds mirostat_mu {:g}", state.mirostat_mu);
  random_ = SplitMix64(state.random);
  mirostat_mu_ = state.mirostat_mu;
  history_ = TokenHistory(n_kept_, n_penalties_);
  accept(state.history);
  return {};
}

// The ids whose logits are not those of the row: bias first, then the penalties of the window, then DRY.
void Sampler::collect_edits(std::span<const float> logits) {
  edits_.clear();
  auto bias = params_.logit_bias.begin();
  const auto take_bias_below = [&](int32_t id) {
    for (; bias != params_.logit_bias.end() && bias->token < id; ++bias)
      edits_.push_back({bias->token, logits[static_cast<size_t>(bias->token)] + bias->bias});
  };
  if (penalises()) {
    for (const TokenHistory::Count& entry : history_.counts()) {
      if (entry.token < 0 || static_cast<size_t>(entry.token) >= logits.size()) continue;
      take_bias_below(entry.token);
      float logit = logits[static_cast<size_t>(entry.token)];
      if (bias != params_.logit_bias.end() && bias->token == entry.token) logit += (bias++)->bias;
      edits_.push_back({entry.token, penalised(logit, entry.count)});
    }
  }
  take_bias_below(std::numeric_limits<int32_t>::max());
  for (const Candidate& penalty : dry_.penalties(history_)) subtract(penalty.id, penalty.logit, logits);
}

bool Sampler::penalises() const {
  return params_.repeat_penalty != 1.0f || params_.frequency_penalty != 0.0f || params_.presence_penalty != 0.0f;
}

// A token that occurs `count` times in the window.
float Sampler::penalised(float logit, int32_t count) const {
  logit -= static_cast<float>(count) * params_.frequency_penalty;
  logit -= params_.presence_penalty;
  const float repeat = params_.repeat_penalty;
  return logit > 0.0f ? logit / repeat : logit * repeat;
}

void Sampler::subtract(int32_t token, float penalty, std::span<const float> logits) {
  if (token < 0 || static_cast<size_t>(token) >= logits.size()) return;
  auto at = std::lower_bound(edits_.begin(), edits_.end(), token, [](const Candidate& edit, int32_t id) { return edit.id < id; });
  if (at == edits_.end() || at->id != token) at = edits_.insert(at, {token, logits[static_cast<size_t>(token)]});
  at->logit -= penalty;
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
