#include "support/loaded_model.hpp"

#include <catch2/catch.hpp>

#include "runtime/generate.hpp"
#include "support/support.hpp"

namespace minfer::test {

std::unique_ptr<plugin::Registry> build_tree_plugins() {
  plugin::SearchPaths search;
  search.exe_dir = build_dir() / "bin";
  search.dirs = {build_dir() / "tests/plugins/remote"};  // where it is not built it is not found
  return std::make_unique<plugin::Registry>(plugin::discover(search), plugin::LogSink());
}

namespace {

ModelOptions model_options(const std::filesystem::path& file, std::vector<BackendSpec> backends, KvFormat kv_format) {
  ModelOptions options;
  options.path = file;
  options.kv_format = kv_format;
  options.backends = std::move(backends);
  return options;
}

}  // namespace

BackendSpec backend(std::string name, int gpu_layers, plugin::Options options, bool strict) {
  BackendSpec spec;
  spec.request.name = std::move(name);
  spec.request.options = std::move(options);
  using Mode = LayerRequest::Mode;
  if (gpu_layers >= 0) spec.gpu_layers = {Mode::kCount, static_cast<uint32_t>(gpu_layers)};
  spec.strict = strict;
  return spec;
}

ModelOnBackends::ModelOnBackends(const std::filesystem::path& file, std::vector<BackendSpec> backends, KvFormat kv_format)
    : registry_(build_tree_plugins()), kv_format_(kv_format) {
  auto model = Model::load(model_options(file, std::move(backends), kv_format), *registry_,
                           [&](std::string_view line) { notices_.emplace_back(line); });
  if (!model.ok()) FAIL(model.error().text);
  model_ = std::move(*model);
}

std::string ModelOnBackends::refusal(const std::filesystem::path& file, std::vector<BackendSpec> backends, KvFormat kv_format) {
  const auto registry = build_tree_plugins();
  const auto model = Model::load(model_options(file, std::move(backends), kv_format), *registry, [](std::string_view) {});
  if (model.ok()) FAIL("the model was loaded");
  return model.error().text;
}

namespace {

BackendSpec cpu_backend(const CpuOptions& options) {
  return backend("cpu", -1, {{"threads", std::to_string(options.threads)}, {"isa", options.isa}});
}

}  // namespace

ModelOptions load_options(const std::filesystem::path& file, const CpuOptions& options) {
  return model_options(file, {cpu_backend(options)}, options.kv_format);
}

ModelOnCpu::ModelOnCpu(const std::filesystem::path& file, const CpuOptions& options)
    : ModelOnBackends(file, {cpu_backend(options)}, options.kv_format) {}

std::unique_ptr<Session> ModelOnBackends::session(uint32_t n_ctx, CParams cparams) const {
  cparams.n_ctx = std::min(n_ctx, model_->info().n_ctx_train);
  cparams.kv_format = kv_format_;
  auto session = Session::create(model_->engine(), cparams);
  if (!session.ok()) FAIL(session.error().text);
  return std::move(*session);
}

std::vector<float> run_tokens(Session& session, const std::vector<int32_t>& tokens, uint32_t n_out, uint32_t n_batch) {
  std::vector<float> rows;
  for (size_t begin = 0; begin < tokens.size(); begin += n_batch) {
    const size_t end = std::min<size_t>(begin + n_batch, tokens.size());
    const size_t first_out = tokens.size() - n_out;
    const SeqChunk chunk{0, std::span(tokens).subspan(begin, end - begin),
                         static_cast<uint32_t>(end - std::min(end, std::max(begin, first_out)))};
    const auto logits = session.forward({&chunk, 1});
    if (!logits.ok()) FAIL(logits.error().text);
    rows.insert(rows.end(), logits->values.begin(), logits->values.end());
  }
  return rows;
}

}  // namespace minfer::test
