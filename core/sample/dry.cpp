#include "sample/dry.hpp"

#include <algorithm>
#include <limits>

#include "sample/math.hpp"

namespace minfer::sample {
namespace {

// The exponent is capped where base^exponent would leave the range of an f32.
constexpr double kMaxFloat = std::numeric_limits<float>::max(), kLogMaxFloat = 88.72284;

double power(double base, size_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2) result *= base;
  return result;
}

// z[i]: how many tokens from `tokens[i]` on equal those from tokens[0] on (Gusfield's Z-algorithm, linear). z[0] is not set.
void z_function(std::span<const int32_t> tokens, std::vector<uint32_t>& z) {
  z.assign(tokens.size(), 0);
  size_t left = 0, right = 0;  // the match that ends furthest right: tokens[left..right) = tokens[0..right-left)
  for (size_t i = 1; i < tokens.size(); ++i) {
    size_t length = i < right ? std::min<size_t>(z[i - left], right - i) : 0;
    while (i + length < tokens.size() && tokens[length] == tokens[i + length]) ++length;
    z[i] = static_cast<uint32_t>(length);
    if (i + length > right) left = i, right = i + length;
  }
}

}  // namespace

Dry::Dry(const SamplerParams& params, size_t last_n)
    : multiplier_(params.dry_multiplier),
      base_(params.dry_base),
      allowed_(static_cast<size_t>(params.dry_allowed_length)),
      last_n_(params.dry_multiplier > 0.0f ? last_n : 0),
      max_exponent_(base_ > 1.0 ? static_cast<size_t>(kLogMaxFloat / log(base_)) : 0),
      breakers_(params.dry_breakers) {
  std::sort(breakers_.begin(), breakers_.end());
  reversed_.reserve(last_n_);
  lengths_.reserve(last_n_);
  penalties_.reserve(last_n_);
}

std::span<const Candidate> Dry::penalties(const TokenHistory& history) {
  penalties_.clear();
  reversed_.clear();
  for (size_t i = 0; i < std::min(last_n_, history.size()); ++i) reversed_.push_back(history.back(i));
  if (reversed_.size() <= allowed_) return penalties_;
  const size_t limit = repeat_limit(reversed_);
  if (limit < allowed_) return penalties_;

  z_function(reversed_, lengths_);
  for (size_t i = 1; i < reversed_.size(); ++i) {
    const size_t length = std::min<size_t>(lengths_[i], limit);
    if (length < allowed_ || is_breaker(reversed_[i - 1])) continue;
    const size_t exponent = length - allowed_;
    const double penalty = multiplier_ * power(base_, base_ > 1.0 ? std::min(exponent, max_exponent_) : 0);
    penalties_.push_back({reversed_[i - 1], static_cast<float>(std::min(penalty, kMaxFloat))});
  }
  // Per token the largest: a longer repeat costs at least as much.
  std::sort(penalties_.begin(), penalties_.end(),
            [](const Candidate& a, const Candidate& b) { return a.id != b.id ? a.id < b.id : a.logit > b.logit; });
  const auto same = [](const Candidate& a, const Candidate& b) { return a.id == b.id; };
  penalties_.erase(std::unique(penalties_.begin(), penalties_.end(), same), penalties_.end());
  return penalties_;
}

// How long a repeat may be before it would reach over a breaker: the tokens behind the newest one (all, without any).
size_t Dry::repeat_limit(std::span<const int32_t> reversed) const {
  const auto before = [](const std::vector<int32_t>& breaker, int32_t token) { return breaker.front() < token; };
  for (size_t i = 0; i < reversed.size(); ++i) {
    size_t longest = 0;  // tokens of a breaker that begins at distance i
    for (auto at = std::lower_bound(breakers_.begin(), breakers_.end(), reversed[i], before);
         at != breakers_.end() && at->front() == reversed[i]; ++at) {
      if (at->size() > i + 1) continue;
      size_t equal = 1;
      while (equal < at->size() && (*at)[equal] == reversed[i - equal]) ++equal;
      if (equal == at->size()) longest = std::max(longest, equal);
    }
    if (longest > 0) return i + 1 - longest;
  }
  return reversed.size();
}

bool Dry::is_breaker(int32_t token) const {
  const auto at = std::lower_bound(breakers_.begin(), breakers_.end(), token,
                                   [](const std::vector<int32_t>& breaker, int32_t id) { return breaker.front() < id; });
  return at != breakers_.end() && at->front() == token && at->size() == 1;  // the shortest sorts first
}

}  // namespace minfer::sample
