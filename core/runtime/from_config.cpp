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

Result<ModelOptions> model_options(const Config& config) {
  ModelOptions options;
  options.architecture = config.architecture;
  options.architecture_where = "architecture";  // the key
  options.kv_format = kv_format_of(config.context);
  for (const BackendChoice& choice : config.backends) {
    BackendSpec spec;
    spec.request.name = choice.name;
    spec.request.where = choice.where;
    spec.strict = choice.strict;
    if (choice.gpu_layers.mode == GpuLayers::Mode::kCount) spec.gpu_layers = choice.gpu_layers.count;
    for (const yaml::Node& option : choice.options.children) {
      if (option.kind != yaml::Node::Kind::kScalar) return option.error("an option of a backend is a single value");
      spec.request.options[option.key] = option.text;
    }
    options.backends.push_back(std::move(spec));
  }
  return options;
}

std::unique_ptr<plugin::Registry> find_plugins(const PluginConfig& config, plugin::SearchPaths search, const Notice& notice) {
  search.dirs = config.dirs;
  search.files = config.files;
  search.allow_unsafe_paths = config.allow_unsafe_paths;
  plugin::Discovery found = plugin::discover(search);
  for (const std::string& line : found.notices) notice(line);
  const auto log = [notice](plugin::LogLevel level, std::string_view line) {
    if (level != plugin::LogLevel::kDebug) notice(line);
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
  options.sampling.seed = s.seed;
  options.sampling.temperature = s.temperature;
  options.sampling.top_k = static_cast<int32_t>(s.top_k);
  options.sampling.top_p = s.top_p;
  options.sampling.min_p = s.min_p;
  options.sampling.repeat_penalty = s.repeat_penalty;
  options.sampling.frequency_penalty = s.frequency_penalty;
  options.sampling.presence_penalty = s.presence_penalty;
  options.sampling.repeat_last_n = static_cast<int32_t>(s.repeat_last_n);
  return options;
}

}  // namespace minfer
