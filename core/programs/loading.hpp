// From settings to a loaded model: plugin search, model directory, environment, backend options of the command line.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "programs/cli.hpp"
#include "runtime/model.hpp"

namespace minfer::programs {

using Print = std::function<void(std::string_view line)>;

// A registry and the model that leans on it.
struct Loaded {
  std::unique_ptr<plugin::Registry> registry;
  std::unique_ptr<Model> model;
};

// The file that config.model names.
Result<std::filesystem::path> find_model(const Config& config);

// What the command line says about backends beyond the configuration: threads, isa, gpu-layers, backend-option.
struct BackendOverrides {
  plugin::Options offered;
  std::map<std::string, plugin::Options, std::less<>> by_name;
  std::optional<LayerRequest> gpu_layers;
};
Result<BackendOverrides> backend_overrides(const ParsedOptions& parsed);
// The same with these threads, or none said, whatever --threads is.
Result<BackendOverrides> backend_overrides(const ParsedOptions& parsed, const std::optional<std::string>& threads);

// notice gets lines for people. What takes long shows how far it is, on a terminal and unless quiet.
Result<Loaded> load_model(const Config& config, const std::filesystem::path& path, const BackendOverrides& overrides, const Print& notice,
                          bool quiet = false);

// Session parameters: the environment may switch fusions off.
CParams session_params(const Config& config, uint32_t n_ctx);

// The tokenizer and the chat template of a model file, without its weights and without plugins.
struct TextParts {
  gguf::ModelFile file;
  Tokenizer tokenizer;
  std::string_view chat_template;  // empty: none
};
Result<TextParts> load_text_parts(const std::filesystem::path& path);

}  // namespace minfer::programs
