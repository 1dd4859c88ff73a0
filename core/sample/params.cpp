#include "sample/params.hpp"

#include <cmath>

namespace minfer::sample {
namespace {

Status check_range(std::string_view name, float value, float low, float high) {
  if (value >= low && value <= high) return {};
  return invalid("{} is {:g}: it must be from {:g} to {:g}", name, value, low, high);
}

Status check_at_least(std::string_view name, float value, float low) {
  if (std::isfinite(value) && value >= low) return {};
  return invalid("{} is {:g}: it must be a number of at least {:g}", name, value, low);
}

Status check_above_0(std::string_view name, float value) {
  if (std::isfinite(value) && value > 0.0f) return {};
  return invalid("{} is {:g}: it must be a number above 0", name, value);
}

Status check_finite(std::string_view name, float value) {
  if (std::isfinite(value)) return {};
  return invalid("{} is {:g}: it must be a finite number", name, value);
}

Status check_last_n(std::string_view name, int32_t value) {
  if (value >= -1 && value <= kMaxLastN) return {};
  return invalid("{} is {}: it must be from -1 (the whole context) to {}", name, value, kMaxLastN);
}

Status check_at_least_1(std::string_view name, int32_t value) {
  if (value >= 1) return {};
  return invalid("{} is {}: it must be at least 1", name, value);
}

Status validate_dry(const SamplerParams& params) {
  MINFER_TRY(check_at_least("dry_multiplier", params.dry_multiplier, 0.0f));
  MINFER_TRY(check_at_least("dry_base", params.dry_base, 1.0f));
  MINFER_TRY(check_at_least_1("dry_allowed_length", params.dry_allowed_length));
  MINFER_TRY(check_last_n("dry_penalty_last_n", params.dry_penalty_last_n));
  if (params.dry_multiplier > 0.0f && params.dry_penalty_last_n == 0)
    return invalid("dry_penalty_last_n is 0, where DRY sees nothing: give a window, or dry_multiplier 0 to turn DRY off");
  for (const std::vector<int32_t>& breaker : params.dry_breakers)
    if (breaker.empty()) return invalid("dry_breakers holds an empty sequence");
  return {};
}

}  // namespace

Status validate(const SamplerParams& params) {
  for (const LogitBias& entry : params.logit_bias)
    if (!(entry.bias >= -100.0f && entry.bias <= 100.0f))
      return invalid("logit_bias of token {} is {:g}: it must be from -100 to 100", entry.token, entry.bias);
  MINFER_TRY(check_at_least("repeat_penalty", params.repeat_penalty, kLeastRepeatPenalty));
  MINFER_TRY(check_finite("frequency_penalty", params.frequency_penalty));
  MINFER_TRY(check_finite("presence_penalty", params.presence_penalty));
  MINFER_TRY(check_last_n("repeat_last_n", params.repeat_last_n));
  MINFER_TRY(validate_dry(params));
  if (params.top_k < 0) return invalid("top_k is {}: it must be at least 0 (0 turns it off)", params.top_k);
  MINFER_TRY(check_range("typical_p", params.typical_p, 0.0f, 1.0f));
  MINFER_TRY(check_range("top_p", params.top_p, 0.0f, 1.0f));
  MINFER_TRY(check_range("min_p", params.min_p, 0.0f, 1.0f));
  MINFER_TRY(check_range("xtc_probability", params.xtc_probability, 0.0f, 1.0f));
  MINFER_TRY(check_range("xtc_threshold", params.xtc_threshold, 0.0f, 0.5f));
  MINFER_TRY(check_at_least("top_n_sigma", params.top_n_sigma, 0.0f));
  MINFER_TRY(check_at_least("temperature", params.temperature, 0.0f));
  MINFER_TRY(check_above_0("mirostat_tau", params.mirostat_tau));
  MINFER_TRY(check_above_0("mirostat_eta", params.mirostat_eta));
  return check_at_least_1("mirostat_m", params.mirostat_m);
}

}  // namespace minfer::sample
