#include "cases/files/try_model.hpp"

#include "runtime/generate.hpp"

namespace minfer::test {
namespace {

// Must end in an error or in text, never in anything else.
Status use(const Model& model, KvFormat kv_format, uint32_t n_prompt, int32_t n_predict) {
  const Tokenizer& tokenizer = model.tokenizer();
  MINFER_ASSIGN(const auto ids, tokenizer.encode("Hello, w\xC3\xB6rld 123 \xFF<|im_end|>\n"));
  MINFER_TRY(tokenizer.decode(ids).status());

  CParams cparams;
  cparams.n_ctx = std::min(64u, model.info().n_ctx_train);
  cparams.kv_format = kv_format;
  MINFER_ASSIGN(const auto session, Session::create(model.engine(), cparams));
  std::vector<int32_t> prompt;
  for (uint32_t i = 0; i < n_prompt; ++i) prompt.push_back(static_cast<int32_t>((40 + 7 * i) % model.info().n_vocab));
  GenerateOptions options;
  options.n_predict = n_predict;
  options.sampling.temperature = 0;
  return generate(*session, tokenizer, prompt, options, {}).status();
}

}  // namespace

Outcome ModelTrier::try_bytes(std::string_view bytes, uint32_t n_prompt, int32_t n_predict) {
  write_file(path(), bytes);
  CpuOptions options;
  options.threads = 1;
  const auto model = Model::load(load_options(path(), options), *registry_, [](std::string_view) {});
  if (!model.ok()) return {Ended::kLoading, model.error().text};
  const Status used = use(**model, options.kv_format, n_prompt, n_predict);
  if (!used.ok()) return {Ended::kRunning, used.error().text};
  return {Ended::kDone, {}};
}

}  // namespace minfer::test
