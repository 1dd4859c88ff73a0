// minfer plugin SDK: rotary positions stretched beyond the context a model was first trained for, as a file's metadata describe them,
// turned into what operations take anyway: a factor of all frequencies, a divisor of each, a factor of the attention scores. Backends
// know no kind of scaling.
//
// Keys "<architecture>.rope.scaling.*": the GGUF specification. Linear: arXiv 2306.15595. YaRN: arXiv 2309.00071, rounded and with the
// defaults that Hugging Face transformers has in modeling_rope_utils.py. Scaling by wave length (arXiv 2407.21783) needs no key: files
// bring its divisors as tensor rope_freqs.weight.
#ifndef MINFER_PLUGIN_ROPE_SCALING_HPP_
#define MINFER_PLUGIN_ROPE_SCALING_HPP_

#include <algorithm>
#include <cmath>

#include "minfer/plugin/arch.hpp"

MINFER_SDK_BEGIN

struct RopeScaling {
  float freq_scale = 1;             // Rope::freq_scale
  std::vector<float> freq_factors;  // [head_dim/2], for a constant weight; empty: all are 1
  // YaRN lengthens q and k by one factor; here their product is scaled by its square. The same only where whole heads turn.
  double score_scale = 1;

  bool none() const { return freq_scale == 1 && freq_factors.empty() && score_scale == 1; }
};

namespace rope_scaling_detail {

// NTK by parts: pairs that turned more than beta_fast times over the original context keep their frequency, those below beta_slow turns
// are slowed by the whole factor, and a ramp lies between. Everything in double, rounded once.
inline std::vector<float> yarn_freq_factors(uint32_t head_dim, double freq_base, double factor, double original_context, double beta_fast,
                                            double beta_slow, const std::string& prefix) {
  const double pi = std::acos(-1.0);
  const auto pair_with_turns = [&](double turns) {
    return head_dim * std::log(original_context / (turns * 2 * pi)) / (2 * std::log(freq_base));
  };
  const double low = std::max(std::floor(pair_with_turns(beta_fast)), 0.0);
  const double high = std::min(std::ceil(pair_with_turns(beta_slow)), static_cast<double>(head_dim) - 1);
  if (!(low <= high))
    fail(MI_UNSUPPORTED, prefix, "rope.scaling: no pair of a head turns from ", beta_slow, " to ", beta_fast, " times in ",
         original_context, " positions with base ", freq_base, ", so YaRN has no ramp");
  std::vector<float> factors;
  for (uint32_t i = 0; i < head_dim / 2; ++i) {
    const double slowed = std::clamp((i - low) / std::max(high - low, 0.001), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / (slowed / factor + (1 - slowed))));
  }
  return factors;
}

}  // namespace rope_scaling_detail

// `prefix` is "<architecture>.". A kind that is not implemented here is refused by its name, a parameter by its key.
inline RopeScaling read_rope_scaling(const Metadata& metadata, const std::string& prefix, uint32_t head_dim, float freq_base,
                                     uint32_t n_ctx_train) {
  const auto key = [&](const char* name) { return prefix + "rope.scaling." + name; };
  const auto only = [&](const char* name, double value) {
    const std::optional<double> found = metadata.find_f64(key(name));
    if (found && *found != value) fail(MI_UNSUPPORTED, key(name), " is ", *found, ": only ", value, " is supported");
  };
  const std::string old_key = prefix + "rope.scale_linear";  // linear, in files from before rope.scaling.type
  const std::string type(metadata.find_string(key("type")).value_or(metadata.find_f64(old_key) ? "linear" : ""));

  RopeScaling scaling;
  if (type == "none") return scaling;
  if (type.empty()) {
    only("factor", 1);  // else: which kind?
    return scaling;
  }
  if (type != "linear" && type != "yarn") fail(MI_UNSUPPORTED, key("type"), " is '", type, "': known are 'none', 'linear' and 'yarn'");

  const bool old = !metadata.find_f64(key("factor")) && metadata.find_f64(old_key);
  const double factor = metadata.positive_f32(old ? old_key : key("factor"));
  if (type == "linear") {
    only("attn_factor", 1);
    scaling.freq_scale = static_cast<float>(1 / factor);
    return scaling;
  }
  if (factor < 1) fail(MI_INVALID_ARGUMENT, key("factor"), " is ", factor, ": YaRN takes 1 or more");
  only("yarn_log_multiplier", 0);
  only("yarn_ext_factor", 1);
  only("yarn_attn_factor", 1);
  if (metadata.find_tensor("rope_freqs.weight"))
    fail(MI_UNSUPPORTED, key("type"), " is 'yarn' in a file with tensor rope_freqs.weight: not both");
  const double beta_fast = metadata.positive_f32_or(key("yarn_beta_fast"), 32),
               beta_slow = metadata.positive_f32_or(key("yarn_beta_slow"), 1);
  const double original = metadata.u32_or(key("original_context_length"), n_ctx_train, 1, 0x7fffffff);
  if (!(freq_base > 1)) fail(MI_INVALID_ARGUMENT, prefix, "rope.freq_base is ", freq_base, ": YaRN takes more than 1");
  scaling.freq_factors = rope_scaling_detail::yarn_freq_factors(head_dim, freq_base, factor, original, beta_fast, beta_slow, prefix);
  const double length = metadata.positive_f32_or(key("attn_factor"), 1) * (0.1 * std::log(factor) + 1);
  scaling.score_scale = length * length;
  return scaling;
}

MINFER_SDK_END

#endif
