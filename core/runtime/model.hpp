// A model from its file to its devices: opened, understood by an architecture plugin, placed, weights imported, tokenizer built.
// Immutable once loaded; sessions on several threads may share it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/loaded_model.hpp"
#include "engine/schedule/offload_plan.hpp"
#include "gguf/model_file.hpp"
#include "plugin/registry.hpp"
#include "text/tokenizer.hpp"

namespace minfer {

// One backend to use, best first.
struct BackendSpec {
  plugin::BackendRequest request;
  LayerRequest gpu_layers;  // leading transformer blocks it takes
  bool strict = false;      // an operation that it lacks is an error instead of going to the next one
};

struct ModelOptions {
  std::filesystem::path path;
  std::string architecture = "auto";  // plugin name
  std::string architecture_where;     // place of that name, for messages
  std::vector<BackendSpec> backends;  // empty: every plugin that may be chosen automatically, best first
  plugin::Options offered;            // for every backend that has such an option ("threads"), over what its spec says
  std::map<std::string, plugin::Options, std::less<>> backend_options;  // for single backends, by name, over their specs
  std::optional<LayerRequest> gpu_layers;                               // for the first device other than the host, over its spec
  KvFormat kv_format = KvFormat::kF16;
  uint32_t n_ctx = 4096;                                         // of the sessions to come: how much memory their KV will take
  uint32_t n_batch = 512;                                        // likewise: their scratch memory
  std::function<void(uint64_t done, uint64_t total)> on_import;  // bytes of weights taken over so far, while the model loads
};

// Lines for people while a model loads: what was chosen, what moved elsewhere.
using Notice = std::function<void(std::string_view line)>;

class Model {
 public:
  // The registry must outlive the model.
  static Result<std::unique_ptr<Model>> load(const ModelOptions& options, plugin::Registry& registry, const Notice& notice);

  const gguf::ModelFile& file() const { return file_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ModelInfo& info() const { return architecture_->info(); }
  const LoadedModel& engine() const { return *engine_; }
  // tokenizer.chat_template; empty where the file has none.
  std::string_view chat_template() const { return chat_template_; }
  std::string_view general_name() const { return general_name_; }
  uint64_t weight_bytes() const { return weight_bytes_; }  // of the file's tensors that graphs use
  uint64_t n_parameters() const { return n_parameters_; }

 private:
  explicit Model(gguf::ModelFile file) : file_(std::move(file)) {}
  Status open_architecture(const ModelOptions& options, plugin::Registry& registry);
  Status read_tokenizer();
  std::string weight_types() const;
  Status open_backends(const ModelOptions& options, plugin::Registry& registry, const Notice& notice);
  Status import_weights(const ModelOptions& options, const Notice& notice);

  gguf::ModelFile file_;
  std::optional<Tokenizer> tokenizer_;
  std::string_view chat_template_;
  std::string_view general_name_;
  uint64_t weight_bytes_ = 0;
  uint64_t n_parameters_ = 0;
  std::unique_ptr<ModelArchitecture> architecture_;
  std::vector<std::unique_ptr<plugin::OpenedBackend>> backends_;
  std::vector<Device*> devices_;
  std::vector<LayerRequest> layers_;     // by device
  std::vector<bool> strict_;             // by device
  std::unique_ptr<LoadedModel> engine_;  // last: goes before the devices
};

}  // namespace minfer
