// The settings of the sampling chain, with their ranges and the value that turns each step off.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"

namespace minfer::sample {

struct LogitBias {
  int32_t token = 0;
  float bias = 0.0f;  // -100 to 100
  friend bool operator==(const LogitBias&, const LogitBias&) = default;
};

enum class Mirostat { kOff, kV1, kV2 };

struct SamplerParams {
  uint64_t seed = 42;
  std::vector<LogitBias> logit_bias;  // added first of all; each token once, in any order

  float repeat_penalty = 1.1f;     // >= kLeastRepeatPenalty; 1: off; below 1 repeats are favoured
  float frequency_penalty = 0.0f;  // finite; 0: off
  float presence_penalty = 0.0f;   // finite; 0: off
  int32_t repeat_last_n = 64;      // tokens that the penalties look back on, prompt included; -1: n_ctx; 0: no penalties

  float dry_multiplier = 0.0f;      // >= 0; 0: off
  float dry_base = 1.75f;           // >= 1
  int32_t dry_allowed_length = 2;   // >= 1: the repeat of that length is the first that is penalised
  int32_t dry_penalty_last_n = 64;  // tokens that DRY looks back on; -1: n_ctx; not 0 where DRY is on
  // Token sequences that no repeat reaches over. A token that is one of them is never penalised.
  std::vector<std::vector<int32_t>> dry_breakers;

  int32_t top_k = 40;            // >= 0; 0: off
  float typical_p = 1.0f;        // 0 to 1; 1: off
  float top_p = 0.95f;           // 0 to 1; 1: off
  float min_p = 0.0f;            // 0 to 1; 0: off
  float xtc_probability = 0.0f;  // 0 to 1; 0: off
  float xtc_threshold = 0.5f;    // 0 to 0.5
  float top_n_sigma = 0.0f;      // >= 0; 0: off

  float temperature = 0.8f;  // >= 0; below 1e-6: the most probable token, no random number is drawn
  Mirostat mirostat = Mirostat::kOff;
  float mirostat_tau = 5.0f;  // > 0: the surprise aimed at, in bits
  float mirostat_eta = 0.1f;  // > 0: how fast it is followed
  int32_t mirostat_m = 100;   // >= 1: candidates that version 1 estimates from
};

inline constexpr int32_t kMaxLastN = 1 << 20;
inline constexpr float kLeastRepeatPenalty = 1e-6f;  // logits are divided by it

// Ok, or an error that names the parameter, its value and the values allowed.
Status validate(const SamplerParams& params);

}  // namespace minfer::sample
