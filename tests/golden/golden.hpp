// Comparison of logits with independent float64 references (tests/data/README.md says where they come from).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/loaded_model.hpp"

namespace minfer::test {

// ---- tiny models: raw logits ----
struct TinyCase {
  std::string file;    // in tests/data/tiny
  std::string type;    // weight type
  double sim_rms = 0;  // what simulated 8-bit activations cost: RMS and largest difference of a logit
  double sim_max = 0;
};
std::vector<TinyCase> tiny_cases(const std::string& architecture);

struct TinySequence {
  std::vector<int32_t> ids;
  std::vector<uint32_t> rows;               // positions given
  std::vector<std::vector<double>> logits;  // [row][vocabulary]
};
std::vector<TinySequence> tiny_reference(const TinyCase& tiny);
std::vector<TinySequence> read_reference(const std::filesystem::path& json);

struct Difference {
  double rms = 0;
  double max = 0;
};
// Of all logits of the reference's rows, over all its sequences, each run as one prompt from an empty cache.
Difference difference_from_reference(const ModelOnCpu& model, const std::vector<TinySequence>& reference);
// Limits on the difference from the reference, by weight type: float arithmetic, or 8-bit activations.
Difference tiny_limits(const TinyCase& tiny);

// ---- real models: log-probabilities of the 40 most likely tokens ----
struct PromptReference {
  std::string name;
  std::vector<int32_t> ids;
  struct Position {
    uint32_t pos = 0;
    std::vector<std::pair<int32_t, double>> top;  // 40 x (id, log-probability), best first
  };
  std::vector<Position> positions;
  struct GreedyStep {
    int32_t id;
    double margin;  // logit of the best minus logit of the second
  };
  std::vector<GreedyStep> greedy;  // 48
  std::vector<double> last_row;    // of the last position: every log-probability
};
std::vector<PromptReference> prompt_references(const std::string& folder);

// Statistics over many positions, as tests/data/README.md defines them.
struct Agreement {
  uint64_t positions = 0;
  double kl_sum = 0;
  double kl_max = 0;
  double top1_dlogprob_sum = 0;  // of the reference's best token
  double top1_dlogprob_max = 0;
  double top10_dlogprob_max = 0;
  uint64_t same_top1 = 0;
  uint64_t greedy_steps = 0;
  uint64_t greedy_same = 0;
  uint64_t full_rows = 0;
  double full_kl_sum = 0;
  double full_kl_max = 0;
  double worst_margin_missed = 0;         // largest reference margin at which the best token differs: at the positions
  double worst_greedy_margin_missed = 0;  // and at the greedy steps

  void add(const PromptReference::Position& reference, std::span<const float> logits);
  void add_greedy(const PromptReference::GreedyStep& reference, std::span<const float> logits);
  // KL over the whole vocabulary.
  void add_full(std::span<const double> reference, std::span<const float> logits);
  double mean_kl() const { return kl_sum / static_cast<double>(positions); }
  double mean_full_kl() const { return full_kl_sum / static_cast<double>(full_rows); }
  double mean_top1_dlogprob() const { return top1_dlogprob_sum / static_cast<double>(positions); }
  double top1_agreement() const { return static_cast<double>(same_top1) / static_cast<double>(positions); }
};

int32_t argmax(std::span<const float> logits);  // lowest id on ties

}  // namespace minfer::test
