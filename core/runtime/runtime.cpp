// minfer/runtime.hpp over the runtime's own parts.
#include "minfer/runtime.hpp"

#include <algorithm>

#include "base/out_of_memory.hpp"
#include "config/config.hpp"
#include "runtime/from_config.hpp"
#include "runtime/prompt.hpp"

namespace minfer::runtime {
namespace {

// The file, and what the program says over it.
Result<Config> read_settings(const LoadOptions& options) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return io_error("current folder: {}", error.message());
  Config config;
  if (!options.config_file.empty()) {
    MINFER_ASSIGN(config, load_config(options.config_file, this_machine()));
  }
  if (!options.model.empty()) MINFER_TRY(apply_override(config, "model", options.model, "LoadOptions::model", here));
  if (!options.backends.empty()) MINFER_TRY(apply_override_list(config, "backends", options.backends, "LoadOptions::backends", here));
  for (const auto& [key, value] : options.settings) MINFER_TRY(apply_override(config, key, value, "LoadOptions::settings", here));
  if (!options.plugin_dirs.empty())
    MINFER_TRY(apply_override_list(config, "plugins.dirs", options.plugin_dirs, "LoadOptions::plugin_dirs", here));
  return config;
}

FinishReason to_public(minfer::FinishReason reason) {
  switch (reason) {
    case minfer::FinishReason::kEndOfGeneration: return FinishReason::kEndOfGeneration;
    case minfer::FinishReason::kStopString: return FinishReason::kStopString;
    case minfer::FinishReason::kLength: return FinishReason::kLength;
    case minfer::FinishReason::kContextFull: return FinishReason::kContextFull;
    case minfer::FinishReason::kCancelled: return FinishReason::kCancelled;
  }
  return FinishReason::kCancelled;
}

}  // namespace

struct Model::Impl {
  Config config;
  std::unique_ptr<plugin::Registry> registry;
  std::unique_ptr<minfer::Model> model;
  std::optional<Result<ChatTemplate>> chat_template;  // none: the file has none; an error: of its text, told to whoever wants it
};

Result<Model> Model::load(const LoadOptions& options) {
  return catch_out_of_memory([&]() -> Result<Model> {
    const Notice notice = [say = options.on_notice](std::string_view line) {
      if (say) say(line);
    };
    auto impl = std::make_shared<Impl>();
    MINFER_ASSIGN(impl->config, read_settings(options));
    MINFER_ASSIGN(ModelOptions model, model_options(impl->config));
    MINFER_ASSIGN(model.path, resolve_model(impl->config.model, {options.model_dir, {}}));
    model.offered.insert(options.backend_settings.begin(), options.backend_settings.end());
    impl->registry = find_plugins(impl->config.plugins, plugin::standard_search(), notice);
    MINFER_ASSIGN(impl->model, minfer::Model::load(model, *impl->registry, notice));
    if (!impl->model->chat_template().empty())
      impl->chat_template.emplace(ChatTemplate::parse(impl->model->chat_template(), "tokenizer.chat_template"));
    return Model(std::move(impl));
  });
}

std::string Model::name() const { return std::string(impl_->model->general_name()); }
uint32_t Model::n_vocab() const { return impl_->model->info().n_vocab; }
uint32_t Model::n_ctx_train() const { return impl_->model->info().n_ctx_train; }
bool Model::has_chat_template() const { return impl_->chat_template.has_value(); }

GenerateOptions Model::generate_options() const {
  const Config& config = impl_->config;
  GenerateOptions options;
  options.n_predict = config.generation.n_predict;
  options.stop = config.generation.stop;
  options.seed = config.sampling.seed;
  options.temperature = config.sampling.temperature;
  options.top_k = config.sampling.top_k;
  options.top_p = config.sampling.top_p;
  options.min_p = config.sampling.min_p;
  options.repeat_penalty = config.sampling.repeat_penalty;
  return options;
}

Result<std::vector<int32_t>> Model::tokenize(std::string_view text, bool with_control_tokens) const {
  return catch_out_of_memory([&]() -> Result<std::vector<int32_t>> {
    EncodeOptions options;
    options.parse_special = with_control_tokens;
    MINFER_ASSIGN(const std::vector<TokenId> ids, impl_->model->tokenizer().encode(text, options));
    return std::vector<int32_t>(ids.begin(), ids.end());
  });
}

Result<std::string> Model::detokenize(const std::vector<int32_t>& tokens) const {
  return catch_out_of_memory([&]() -> Result<std::string> {
    const std::vector<TokenId> ids(tokens.begin(), tokens.end());  // a negative one becomes an id beyond every vocabulary
    return impl_->model->tokenizer().decode(ids);
  });
}

struct Session::Impl {
  std::shared_ptr<const Model::Impl> model;
  std::unique_ptr<minfer::Session> session;
  std::vector<int32_t> held;  // the tokens of sequence 0, or fewer: those that a later prompt may reuse

  Result<Generation> run(const std::vector<int32_t>& prompt, const GenerateOptions& options);
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Model& model, uint32_t n_ctx) {
  return catch_out_of_memory([&]() -> Result<Session> {
    const ContextConfig& context = model.impl_->config.context;
    CParams params;
    params.n_ctx = n_ctx != 0 ? n_ctx : context.n_ctx.value_or(std::min(kDefaultContextTokens, model.n_ctx_train()));
    params.kv_format = kv_format_of(context);
    auto impl = std::make_unique<Impl>();
    impl->model = model.impl_;
    MINFER_ASSIGN(impl->session, minfer::Session::create(model.impl_->model->engine(), params));
    return Session(std::move(impl));
  });
}

Result<Generation> Session::Impl::run(const std::vector<int32_t>& prompt, const GenerateOptions& options) {
  minfer::GenerateOptions how = minfer::generate_options(model->config);
  how.n_predict = options.n_predict;
  how.n_keep = options.n_keep;
  how.stop = options.stop;
  how.sampling.seed = options.seed;
  how.sampling.temperature = options.temperature;
  how.sampling.top_k = static_cast<int32_t>(std::min<uint32_t>(options.top_k, INT32_MAX));
  how.sampling.top_p = options.top_p;
  how.sampling.min_p = options.min_p;
  how.sampling.repeat_penalty = options.repeat_penalty;

  std::vector<int32_t> seen = prompt;  // all that enters the sequence, as long as nothing is dropped from its front
  size_t n_told = 0;
  bool shifted = false;
  GenerateCallbacks callbacks;
  callbacks.on_text = options.on_text;
  callbacks.on_prefill = options.on_prompt;
  callbacks.on_shift = [&](uint32_t, uint32_t) { shifted = true; };
  callbacks.on_token = [&](uint32_t, int32_t token) {  // first those of the prompt
    if (n_told++ < prompt.size()) return;
    seen.push_back(token);
    if (options.on_token) options.on_token(token);
  };
  if (options.cancel) callbacks.should_stop = [cancel = options.cancel] { return cancel->load(std::memory_order_relaxed); };

  // The last token of the prompt is computed always: its logits are wanted.
  const auto differ = std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end());
  const auto n_same = static_cast<uint32_t>(differ.first - held.begin());
  const uint32_t n_reused = prompt.empty() ? 0 : std::min(n_same, static_cast<uint32_t>(prompt.size() - 1));
  held.clear();  // of a call that throws nothing is reused
  MINFER_TRY(session->rollback(0, n_reused));
  auto result = minfer::generate(*session, model->model->tokenizer(), prompt, how, callbacks);
  if (!shifted) held.assign(seen.begin(), seen.begin() + session->cursor(0));
  MINFER_TRY(result.status());

  Generation generation;
  generation.text = std::move(result->text);
  generation.tokens = std::move(result->tokens);
  generation.finish = to_public(result->finish);
  generation.n_prompt = result->n_prompt;
  generation.n_reused = result->n_reused;
  generation.prompt_s = result->prefill_s;
  generation.decode_s = result->decode_s;
  return generation;
}

Result<Generation> Session::generate(std::string_view prompt, const GenerateOptions& options) {
  return catch_out_of_memory([&]() -> Result<Generation> {
    MINFER_ASSIGN(const std::vector<int32_t> ids, raw_prompt(impl_->model->model->tokenizer(), prompt));
    return impl_->run(ids, options);
  });
}

Result<Generation> Session::chat(const std::vector<Message>& messages, const GenerateOptions& options) {
  return catch_out_of_memory([&]() -> Result<Generation> {
    const Model::Impl& model = *impl_->model;
    if (!model.chat_template) return not_found("the model has no chat template; use generate");
    MINFER_TRY(model.chat_template->status());
    std::vector<ChatMessage> list;
    for (const Message& message : messages) list.push_back({message.role, message.content});
    MINFER_ASSIGN(const std::vector<int32_t> ids, chat_prompt(**model.chat_template, model.model->tokenizer(), list));
    return impl_->run(ids, options);
  });
}

uint32_t Session::n_ctx() const { return impl_->session->cparams().n_ctx; }
uint32_t Session::n_tokens() const { return impl_->session->cursor(0); }

void Session::clear() {
  impl_->held.clear();
  (void)impl_->session->rollback(0, 0);  // to nothing is always possible
}

}  // namespace minfer::runtime
