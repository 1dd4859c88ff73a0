#include "runtime/model.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>

#include "base/out_of_memory.hpp"
#include "base/utf8.hpp"
#include "plugin/selection.hpp"
#include "runtime/gguf_metadata.hpp"

namespace minfer {
namespace {

// A token id beyond the embedding would be looked up outside it.
Status check_vocabulary(const Tokenizer& tokenizer, const ModelInfo& info) {
  if (tokenizer.vocabulary().size() == info.n_vocab) return {};
  return invalid("tokenizer.ggml.tokens holds {} tokens, token_embd.weight has {} rows", tokenizer.vocabulary().size(), info.n_vocab);
}

// What an architecture does not name takes no part in the result: where one does not fit its file, this shows it.
void report_unused(const gguf::TensorList& tensors, const std::vector<WeightInfo>& weights, const Notice& notice) {
  std::set<std::string_view> used;
  for (const WeightInfo& weight : weights) used.insert(weight.name);
  size_t n_unused = 0;
  std::string names;
  for (const gguf::Tensor& tensor : tensors) {
    if (used.count(tensor.name) || ++n_unused > 3) continue;
    names += (names.empty() ? "" : ", ") + quote(tensor.name);
  }
  if (n_unused == 0) return;
  if (n_unused > 3) names += ", ...";
  notice(text("{} of {} tensors of the file are not used by its architecture: {}", n_unused, tensors.size(), names));
}

// Maps the pages of the matrices, which the first step reads whole, as long as it lives: what else loading does keeps one CPU busy.
class PageMapper {
 public:
  PageMapper(const gguf::ModelFile& file, const std::vector<WeightInfo>& weights)
      : work_(std::async([this, &file, &weights] {
          for (const WeightInfo& weight : weights)
            if (const gguf::Tensor* tensor = file.tensors().find(weight.name); tensor && weight.roles & kRoleMatrix)
              file.map_cached_pages(tensor->bytes, stop_);
        })) {}
  ~PageMapper() {
    stop_ = true;
    work_.wait();  // where no thread could be had, the work begins and ends here
  }

 private:
  std::atomic<bool> stop_{false};
  std::future<void> work_;
};

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const ModelOptions& options, plugin::Registry& registry, const Notice& notice) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<Model>> {
    MINFER_TRY(registry.check_named());
    MINFER_ASSIGN(gguf::ModelFile file, gguf::open_model_file(options.path));
    std::unique_ptr<Model> model(new Model(std::move(file)));
    const std::string name = options.path.string();
    // A file that was cut since it was opened says so, and not what its zeros look like.
    const auto of_file = [&](const Error& error) {
      const Status unchanged = model->file_.check_unchanged();
      return unchanged.ok() ? error.in(name) : unchanged.error();
    };
    if (Status opened = model->open_architecture(options, registry); !opened.ok()) return of_file(opened.error());
    {
      const PageMapper mapper(model->file_, model->architecture_->weights());
      if (Status read = model->read_tokenizer(); !read.ok()) return of_file(read.error());
      MINFER_TRY(model->open_backends(options, registry, notice));
    }
    if (Status imported = model->import_weights(options, notice); !imported.ok()) return of_file(imported.error());
    return model;
  });
}

Status Model::open_architecture(const ModelOptions& options, plugin::Registry& registry) {
  const GgufMetadata source(file_);
  MINFER_ASSIGN(architecture_, registry.open_model(source, options.architecture, options.architecture_where));
  return {};
}

Status Model::read_tokenizer() {
  const gguf::Metadata& metadata = file_.metadata();
  MINFER_ASSIGN(const VocabularySource vocabulary, read_vocabulary(metadata));
  MINFER_ASSIGN(Tokenizer tokenizer, Tokenizer::create(vocabulary));
  tokenizer_.emplace(std::move(tokenizer));
  MINFER_TRY(check_vocabulary(*tokenizer_, info()));
  MINFER_ASSIGN(chat_template_, gguf::or_default(metadata.string("tokenizer.chat_template"), std::string_view()));
  MINFER_ASSIGN(general_name_, gguf::or_default(metadata.string("general.name"), std::string_view()));
  return {};
}

Status Model::open_backends(const ModelOptions& options, plugin::Registry& registry, const Notice& notice) {
  std::vector<BackendSpec> specs = options.backends;
  if (specs.empty()) {
    for (const std::string& name : registry.automatic(plugin::Kind::kBackend)) {
      BackendSpec spec;
      spec.request.name = name;
      specs.push_back(spec);
    }
    if (specs.empty()) return not_found("no backend plugin is installed (minfer-plugins shows where was looked)");
  }
  std::vector<plugin::BackendRequest> requests;
  for (BackendSpec& spec : specs) {
    if (const auto own = options.backend_options.find(spec.request.name); own != options.backend_options.end())
      for (const auto& [key, value] : own->second) spec.request.options[key] = value;
    spec.request.offered = options.offered;
    requests.push_back(spec.request);
  }
  std::vector<plugin::ConsideredBackend> considered = plugin::open_in_order(registry, std::move(requests), options.backends.empty());
  for (size_t i = 0; i < considered.size(); ++i) {
    if (const auto& error = considered[i].error) {
      // Chosen by us, not named by the user: a machine without such a device is no error.
      if (!options.backends.empty() || options.backend_options.count(specs[i].request.name)) return *error;
      notice(text("backend {} is left out: {}", specs[i].request.name, error->text));
    }
    if (!considered[i].opened) continue;
    for (const auto& device : considered[i].opened->devices()) {
      devices_.push_back(device.get());
      layers_.push_back(specs[i].gpu_layers);
      strict_.push_back(specs[i].strict);
      notice(text("backend: {} ({})", device->info().name, device->info().description));
    }
    backends_.push_back(std::move(considered[i].opened));
  }
  if (devices_.empty()) return not_found("no backend can be used on this machine (minfer-plugins --why NAME tells more)");
  for (const auto& entry : options.backend_options) {
    const auto is_named = [&](const auto& backend) { return backend->name() == entry.first; };
    if (std::none_of(backends_.begin(), backends_.end(), is_named))
      return invalid("there are options for backend '{}', which is not used", entry.first);
  }
  if (options.gpu_layers) {
    const auto gpu = std::find_if(devices_.begin(), devices_.end(), [](const Device* device) { return !device->info().host; });
    if (gpu == devices_.end())
      notice("gpu_layers has no effect: every layer is on the host");
    else
      layers_[static_cast<size_t>(gpu - devices_.begin())] = *options.gpu_layers;
  }
  return {};
}

// "types of the file: F32 = 0, IQ4_XS = 23": the engine knows them by number only.
std::string Model::weight_types() const {
  std::map<uint32_t, std::string_view> types;
  for (const gguf::Tensor& tensor : file_.tensors()) types.emplace(static_cast<uint32_t>(tensor.type), gguf::type_name(tensor.type));
  std::string out;
  for (const auto& [id, name] : types) out += text("{}{} = {}", out.empty() ? "types of the file: " : ", ", name, id);
  return out;
}

Status Model::import_weights(const ModelOptions& options, const Notice& notice) {
  std::vector<std::span<const std::byte>> data;
  const std::vector<WeightInfo>& weights = architecture_->weights();
  for (const WeightInfo& weight : weights) {
    if (!weight.values.empty()) {
      data.push_back(std::as_bytes(std::span(weight.values)));
      continue;
    }
    const gguf::Tensor* tensor = file_.tensors().find(weight.name);
    if (!tensor) return not_found("tensor '{}' is missing", weight.name);
    data.push_back(tensor->bytes);
    weight_bytes_ += tensor->bytes.size();
    n_parameters_ += weight.shape.elements();
  }
  CParams probe;
  probe.n_ctx = std::min(options.n_ctx, info().n_ctx_train);
  probe.kv_format = options.kv_format;
  std::vector<uint64_t> sizes;
  for (const auto& bytes : data) sizes.push_back(bytes.size());
  MINFER_ASSIGN(const OffloadPlan offload, plan_offload(*architecture_, {devices_, layers_, sizes, probe, options.n_batch}));
  for (const std::string& line : offload.lines) notice(line);
  auto placed = place_model(*architecture_, devices_, offload.counts, strict_, probe);
  if (!placed.ok() && placed.error().code == ErrorCode::kUnsupported) return unsupported("{} ({})", placed.error().text, weight_types());
  MINFER_ASSIGN(Placement placement, std::move(placed));
  const auto dtype_name = [](DType dtype) { return gguf::type_name(static_cast<gguf::TensorType>(dtype)); };
  for (const std::string& line : describe(placement.fallbacks, devices_, dtype_name)) notice(line);
  report_unused(file_.tensors(), architecture_->weights(), notice);
  // A backend may take a weight over in a later step, when `options` are gone.
  struct Taken {
    std::vector<std::span<const std::byte>> data;
    std::function<void(uint64_t, uint64_t)> on_import;
    uint64_t n_bytes = 0;
    std::atomic<size_t> n_left = 0;  // weights that a device still reads; of one on two devices each counts
    std::atomic<bool> watch = true;
  };
  const auto taken = std::make_shared<Taken>();
  taken->data = data;
  taken->on_import = options.on_import;
  for (uint32_t d = 0; d < devices_.size(); ++d)
    for (uint32_t id = 0; id < data.size(); ++id) taken->n_left += placement.holds(d, id);
  const auto source_done = [this, &weights, taken](uint32_t id) {
    --taken->n_left;
    if (!weights[id].values.empty()) return;
    file_.drop_pages(taken->data[id]);
    if (!taken->on_import) return;
    taken->n_bytes += taken->data[id].size();
    taken->on_import(taken->n_bytes, weight_bytes_);
  };
  if (options.on_import) options.on_import(0, weight_bytes_);
  MINFER_TRY(file_.check_unchanged());  // else the system reports a page that is gone with a signal
  MINFER_ASSIGN(engine_, LoadedModel::load(*architecture_, devices_, std::move(placement), data, source_done));
  MINFER_TRY(file_.check_unchanged());
  taken->on_import = nullptr;
  engine_->watch_sources([this, taken]() -> Status {
    if (!taken->watch) return {};
    const bool last = taken->n_left == 0;  // the step that took the last one over is judged too
    MINFER_TRY(file_.check_unchanged());
    if (last) taken->watch = false;
    return {};
  });
  return {};
}

}  // namespace minfer
