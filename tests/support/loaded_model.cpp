#include "support/loaded_model.hpp"

#include <catch2/catch.hpp>

#include "runtime/generate.hpp"
#include "support/support.hpp"

namespace minfer::test {

ModelOnCpu::ModelOnCpu(const std::filesystem::path& file, const CpuOptions& options) : kv_format_(options.kv_format) {
  plugin::SearchPaths search;
  search.exe_dir = build_dir() / "bin";
  registry_ = std::make_unique<plugin::Registry>(plugin::discover(search), plugin::LogSink());
  ModelOptions load;
  load.path = file;
  load.kv_format = options.kv_format;
  BackendSpec cpu;
  cpu.request.name = "cpu";
  cpu.request.options = {{"threads", std::to_string(options.threads)}, {"isa", options.isa}};
  load.backends.push_back(cpu);
  auto model = Model::load(load, *registry_, [](std::string_view) {});
  if (!model.ok()) FAIL(model.error().text);
  model_ = std::move(*model);
}

std::unique_ptr<Session> ModelOnCpu::session(uint32_t n_ctx, CParams cparams) const {
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
    const SeqChunk chunk{0, std::span(tokens).subspan(begin, end - begin), static_cast<uint32_t>(end - std::min(end, std::max(begin, first_out)))};
    const auto logits = session.forward({&chunk, 1});
    if (!logits.ok()) FAIL(logits.error().text);
    rows.insert(rows.end(), logits->values.begin(), logits->values.end());
  }
  return rows;
}

}  // namespace minfer::test
