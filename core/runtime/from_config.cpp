#include "runtime/from_config.hpp"

namespace minfer {

KvFormat kv_format_of(const ContextConfig& context) {
  switch (context.kv_format) {
    case KvFormatChoice::kF32: return KvFormat::kF32;
    case KvFormatChoice::kQ8_0: return KvFormat::kQ8_0;
    case KvFormatChoice::kF16:
    case KvFormatChoice::kAuto: return KvFormat::kF16;
  }
  return KvFormat::kF16;
}

LayerRequest layer_request(const GpuLayers& layers) {
  switch (layers.mode) {
    case GpuLayers::Mode::kAll: return {LayerRequest::Mode::kAll};
    case GpuLayers::Mode::kCount: return {LayerRequest::Mode::kCount, layers.count};
    case GpuLayers::Mode::kAuto: return {};
  }
  return {};
}

Result<ModelOptions> model_options(const Config& config) {
  ModelOptions options;
  options.architecture = config.architecture;
  options.architecture_where = "architecture";  // the key
  options.kv_format = kv_format_of(config.context);
  options.n_ctx = config.context.n_ctx.value_or(kDefaultContextTokens);
  options.n_batch = config.context.n_batch;
  for (const BackendChoice& choice : config.backends) {
    BackendSpec spec;
    spec.request.name = choice.name;
    spec.request.where = choice.where;
    spec.strict = choice.strict;
    spec.gpu_layers = layer_request(choice.gpu_layers);
    for (const yaml::Node& option : choice.options.children) {
      if (option.kind != yaml::Node::Kind::kScalar) return option.error("an option of a backend is a single value");
      spec.request.options[option.key] = option.text;
    }
    options.backends.push_back(std::move(spec));
  }
  return options;
}

std::unique_ptr<plugin::Registry> find_plugins(const PluginConfig& config, plugin::SearchPaths search, const Notice& notice,
                                               const Notice& trace) {
  search.dirs = config.dirs;
  search.files = config.files;
  search.allow_unsafe_paths = config.allow_unsafe_paths;
  plugin::Discovery found = plugin::discover(search);
  for (const std::string& line : found.notices) notice(line);
  const auto log = [notice, trace](plugin::LogLevel level, std::string_view line) {
    const Notice& sink = level == plugin::LogLevel::kDebug ? trace : notice;
    if (sink) sink(line);
  };
  return std::make_unique<plugin::Registry>(std::move(found), log);
}

GenerateOptions generate_options(const Config& config) {
  const SamplingConfig& s = config.sampling;
  GenerateOptions options;
  options.n_predict = config.generation.n_predict;
  options.n_batch = config.context.n_batch;
  options.stop = config.generation.stop;
  options.context_shift = config.context.shift == ContextShift::kOn;
  sample::SamplerParams& p = options.sampling;
  p.seed = s.seed;
  for (const auto& [token, bias] : s.logit_bias) p.logit_bias.push_back({token, bias});
  p.repeat_penalty = s.repeat_penalty;
  p.frequency_penalty = s.frequency_penalty;
  p.presence_penalty = s.presence_penalty;
  p.repeat_last_n = s.repeat_last_n;
  p.dry_multiplier = s.dry_multiplier;
  p.dry_base = s.dry_base;
  p.dry_allowed_length = s.dry_allowed_length;
  p.dry_penalty_last_n = s.dry_penalty_last_n;
  options.dry_sequence_breakers = s.dry_sequence_breakers;
  p.top_k = static_cast<int32_t>(s.top_k);
  p.typical_p = s.typical_p;
  p.top_p = s.top_p;
  p.min_p = s.min_p;
  p.xtc_probability = s.xtc_probability;
  p.xtc_threshold = s.xtc_threshold;
  p.top_n_sigma = s.top_n_sigma;
  p.temperature = s.temperature;
  p.mirostat = static_cast<sample::Mirostat>(s.mirostat);
  p.mirostat_tau = s.mirostat_tau;
  p.mirostat_eta = s.mirostat_eta;
  p.mirostat_m = s.mirostat_m;
  return options;
}

}  // namespace minfer
