// Filters: see filters.hpp. Probabilities are e^(logit - max) in double, summed in ascending id order.
#include "sample/filters.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "sample/math.hpp"

namespace minfer::sample {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr size_t kBlock = 64;

// Keeps a list of candidates close to the k best while a row streams by.
class TopKSelection {
 public:
  TopKSelection(size_t k, Candidates& candidates, std::vector<float>& values)
      : k_(k), limit_(first_limit(k)), candidates_(candidates), values_(values) {}

  // Takes row[i] as token first_id + i. False: a logit is NaN or +inf (bad() tells which).
  bool take(std::span<const float> row, int32_t first_id) {
    size_t i = 0;
    for (; i + kBlock <= row.size(); i += kBlock) {
      // Most blocks hold nothing of interest once the threshold has risen: one branch-free test for all of it.
      // The negated comparison lets a NaN through to take_each.
      uint32_t any = 0;
      for (size_t j = 0; j < kBlock; ++j) any |= static_cast<uint32_t>(!(row[i + j] < threshold_));
      if (any && !take_each(row.subspan(i, kBlock), first_id + static_cast<int32_t>(i))) return false;
    }
    return take_each(row.subspan(i), first_id + static_cast<int32_t>(i));
  }

  // Removes what does not reach the k-th largest logit.
  void reduce() {
    if (candidates_.size() <= k_) return;
    values_.clear();
    for (const Candidate& candidate : candidates_) values_.push_back(candidate.logit);
    std::nth_element(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(k_ - 1), values_.end(), std::greater<>());
    threshold_ = values_[k_ - 1];
    std::erase_if(candidates_, [this](const Candidate& candidate) { return candidate.logit < threshold_; });
  }

  const Candidate& bad() const { return bad_; }

 private:
  static size_t first_limit(size_t k) { return std::max<size_t>(4 * k, 512); }

  bool take_each(std::span<const float> row, int32_t first_id) {
    for (size_t i = 0; i < row.size(); ++i) {
      const float logit = row[i];
      if (logit < threshold_) continue;
      const int32_t id = first_id + static_cast<int32_t>(i);
      if (!(logit <= std::numeric_limits<float>::max())) {
        bad_ = {id, logit};
        return false;
      }
      candidates_.push_back({id, logit});
    }
    if (candidates_.size() > limit_) {
      reduce();
      // Ties may leave many: the next reduction waits until the list has doubled, so the whole stays linear.
      limit_ = std::max(first_limit(k_), 2 * candidates_.size());
    }
    return true;
  }

  size_t k_;
  size_t limit_;
  float threshold_ = kLowest;  // above -inf: masked tokens never enter
  Candidate bad_{-1, 0.0f};
  Candidates& candidates_;
  std::vector<float>& values_;
};

using Ranked = FilterScratch::Ranked;

bool takes_before(const Ranked& a, const Ranked& b) { return a.key != b.key ? a.key < b.key : a.id < b.id; }

// Keeps the candidates, in order of rank, up to and with the first at which the sum of the weights exceeds `target`.
// Sorts only as much of the list as the cut needs: 128 candidates, then twice as many, ...
void keep_mass(double target, std::vector<Ranked>& ranked, Candidates& candidates) {
  double cumulative = 0.0;
  for (size_t done = 0, end = 0; done < ranked.size(); done = end) {
    end = std::min(ranked.size(), std::max<size_t>(128, 2 * done));
    const auto first = ranked.begin() + static_cast<ptrdiff_t>(done), last = ranked.begin() + static_cast<ptrdiff_t>(end);
    if (last != ranked.end()) std::nth_element(first, last, ranked.end(), takes_before);
    std::sort(first, last, takes_before);
    for (size_t i = done; i < end; ++i) {
      cumulative += ranked[i].weight;
      if (cumulative <= target) continue;
      const auto cut = ranked.begin() + static_cast<ptrdiff_t>(i) + 1;
      std::sort(ranked.begin(), cut, [](const Ranked& a, const Ranked& b) { return a.id < b.id; });
      auto kept = ranked.begin();
      std::erase_if(candidates, [&](const Candidate& candidate) {
        const bool keep = kept != cut && kept->id == candidate.id;
        kept += keep;
        return !keep;
      });
      return;
    }
  }
}

}  // namespace

FilterScratch::FilterScratch(size_t n_vocab) {
  values.reserve(n_vocab);
  ranked.reserve(n_vocab);
}

float max_logit(const Candidates& candidates) {
  float max = candidates.front().logit;
  for (const Candidate& candidate : candidates) max = std::max(max, candidate.logit);
  return max;
}

Status gather_top_k(std::span<const float> logits, std::span<const Candidate> edits, int32_t k, Candidates& candidates,
                    FilterScratch& scratch) {
  candidates.clear();
  const size_t keep = k <= 0 ? logits.size() : std::min(static_cast<size_t>(k), logits.size());
  TopKSelection selection(keep, candidates, scratch.values);
  bool ok = true;
  size_t next = 0;  // the row between the edited ids, then the edited value in its place
  for (size_t e = 0; ok && e < edits.size(); ++e) {
    const size_t id = static_cast<size_t>(edits[e].id);
    ok = selection.take(logits.subspan(next, id - next), static_cast<int32_t>(next)) && selection.take({&edits[e].logit, 1}, edits[e].id);
    next = id + 1;
  }
  ok = ok && selection.take(logits.subspan(next), static_cast<int32_t>(next));
  if (!ok)
    return invalid("the logit of token {} is {}: the model's output is not usable (a damaged file, or a numeric overflow)",
                   selection.bad().id, std::isnan(selection.bad().logit) ? "not a number" : "infinite");
  if (candidates.empty()) return invalid("no token may be chosen: all {} logits are -inf", logits.size());
  selection.reduce();
  return {};
}

void typical_p(float p, Candidates& candidates, FilterScratch& scratch) {
  if (p >= 1.0f || candidates.size() < 2) return;
  const double max = max_logit(candidates);
  double total = 0.0, weighted = 0.0;  // sums of w and of w * (logit - max)
  scratch.ranked.clear();
  for (const Candidate& candidate : candidates) {
    const double relative = candidate.logit - max, weight = exp(relative);
    scratch.ranked.push_back({relative, weight, candidate.id});
    total += weight;
    weighted += weight * relative;
  }
  // -ln p - H = (ln total - relative) - (ln total - weighted / total): the logarithm drops out.
  const double mean = weighted / total;
  for (Ranked& entry : scratch.ranked) entry.key = std::abs(mean - entry.key);
  keep_mass(static_cast<double>(p) * total, scratch.ranked, candidates);
}

void top_p(float p, Candidates& candidates, FilterScratch& scratch) {
  if (p >= 1.0f || candidates.size() < 2) return;
  const double max = max_logit(candidates);
  double total = 0.0;
  scratch.ranked.clear();
  for (const Candidate& candidate : candidates) {
    const double weight = exp(candidate.logit - max);
    scratch.ranked.push_back({-static_cast<double>(candidate.logit), weight, candidate.id});
    total += weight;
  }
  keep_mass(static_cast<double>(p) * total, scratch.ranked, candidates);
}

void min_p(float p, Candidates& candidates) {
  if (p <= 0.0f) return;
  const double least = max_logit(candidates) + log(p);
  std::erase_if(candidates, [least](const Candidate& candidate) { return candidate.logit < least; });
}

void xtc(float threshold, Candidates& candidates) {
  const double max = max_logit(candidates);
  double total = 0.0;
  for (const Candidate& candidate : candidates) total += exp(candidate.logit - max);
  const Candidate* least = nullptr;  // that reaches the threshold
  for (const Candidate& candidate : candidates)
    if (exp(candidate.logit - max) >= static_cast<double>(threshold) * total && (!least || ranks_before(*least, candidate)))
      least = &candidate;
  if (!least) return;
  std::erase_if(candidates, [cut = *least](const Candidate& candidate) { return ranks_before(candidate, cut); });
}

void top_n_sigma(float n, Candidates& candidates) {
  if (n <= 0.0f) return;
  double sum = 0.0, squares = 0.0;
  for (const Candidate& candidate : candidates) sum += candidate.logit;
  const double size = static_cast<double>(candidates.size()), mean = sum / size;
  for (const Candidate& candidate : candidates) squares += (candidate.logit - mean) * (candidate.logit - mean);
  const double least = max_logit(candidates) - static_cast<double>(n) * std::sqrt(squares / size);
  std::erase_if(candidates, [least](const Candidate& candidate) { return candidate.logit < least; });
}

}  // namespace minfer::sample
