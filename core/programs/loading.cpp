#include "programs/loading.hpp"

#include "base/env.hpp"
#include "programs/plugin_search.hpp"
#include "programs/progress_line.hpp"
#include "runtime/from_config.hpp"
#include "runtime/gguf_metadata.hpp"

namespace minfer::programs {
namespace {

// NAME.KEY=VALUE
Status add_backend_option(const std::string& option, BackendOverrides& overrides) {
  const size_t equals = option.find('=');
  const size_t dot = option.substr(0, equals).find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot == 0 || dot + 1 == equals)
    return invalid("--backend-option: '{}' is not of the form NAME.KEY=VALUE", option);
  const std::string name = option.substr(0, dot), key = option.substr(dot + 1, equals - dot - 1);
  if (key == "name" || key == "gpu_layers" || key == "strict")
    return invalid("--backend-option: '{}' belongs to the core, not to the backend; set it in a configuration file", key);
  overrides.by_name[name][key] = option.substr(equals + 1);
  return {};
}

bool switched_on(const char* variable) { return env(variable).value_or("0") != "0"; }

}  // namespace

Result<std::filesystem::path> find_model(const Config& config) {
  ModelSearch search;
  search.home = env("HOME").value_or("");
  search.model_dir = search.home / ".cache/minfer/models";
  if (const auto dir = env("MINFER_MODEL_DIR")) search.model_dir = *dir;
  return resolve_model(config.model, search);
}

Result<BackendOverrides> backend_overrides(const ParsedOptions& parsed) {
  return backend_overrides(parsed, parsed.has("threads") ? std::optional(parsed.value("threads")) : std::nullopt);
}

Result<BackendOverrides> backend_overrides(const ParsedOptions& parsed, const std::optional<std::string>& threads) {
  BackendOverrides overrides;
  for (const std::string& option : parsed.values("backend-option")) MINFER_TRY(add_backend_option(option, overrides));
  if (threads == "auto" || threads == "0" || threads == "-1") {
    overrides.offered["threads"] = "auto";  // over a number in the configuration
  } else if (threads) {
    MINFER_ASSIGN(const uint32_t number, whole_number(*threads, "threads", 1, 1024));
    overrides.offered["threads"] = std::to_string(number);
  }
  if (parsed.has("isa")) overrides.offered["isa"] = parsed.value("isa");
  if (parsed.has("gpu-layers")) {
    MINFER_ASSIGN(const GpuLayers layers, parse_gpu_layers(parsed.value("gpu-layers"), "--gpu-layers"));
    overrides.gpu_layers = layer_request(layers);
  }
  return overrides;
}

Result<Loaded> load_model(const Config& config, const std::filesystem::path& path, const BackendOverrides& overrides, const Print& notice,
                          bool quiet) {
  MINFER_ASSIGN(ModelOptions options, model_options(config));
  options.path = path;
  options.offered = overrides.offered;
  options.backend_options = overrides.by_name;
  options.gpu_layers = overrides.gpu_layers;

  ProgressLine progress("Loading", ProgressLine::Unit::kBytes, quiet ? std::nullopt : progress_terminal());
  options.on_import = [&progress](uint64_t done, uint64_t total) { progress.update(done, total); };

  Loaded loaded;
  loaded.registry = find_plugins(config.plugins, default_search(), notice, env("MINFER_REBUILD_TRACE") ? Print(print_notice) : Print());
  MINFER_ASSIGN(loaded.model, Model::load(options, *loaded.registry, notice));
  return loaded;
}

CParams session_params(const Config& config, uint32_t n_ctx) {
  CParams params;
  params.n_ctx = n_ctx;
  params.kv_format = kv_format_of(config.context);
  params.fuse_qkv = !switched_on("MINFER_NO_FUSE_QKV");
  params.fuse_ffn = !switched_on("MINFER_NO_FUSE_FFN");
  return params;
}

Result<TextParts> load_text_parts(const std::filesystem::path& path) {
  MINFER_ASSIGN(gguf::ModelFile file, gguf::open_model_file(path));
  const auto tokenizer = [&]() -> Result<Tokenizer> {
    MINFER_ASSIGN(const VocabularySource vocabulary, read_vocabulary(file.metadata()));
    return Tokenizer::create(vocabulary);
  }();
  if (!tokenizer.ok()) return tokenizer.error().in(path.string());
  const auto chat = gguf::or_default(file.metadata().string("tokenizer.chat_template"), std::string_view());
  if (!chat.ok()) return chat.error().in(path.string());
  return TextParts{std::move(file), *tokenizer, *chat};
}

}  // namespace minfer::programs
