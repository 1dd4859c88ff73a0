// minfer in a program of your own: load a model, generate text, hold a conversation, cancel. Needs C++17 and the standard library;
// link minfer_runtime.
//
//   minfer::runtime::LoadOptions load;
//   load.model = "models/instruct-0.5b-q4_k_m.gguf";
//   auto model = minfer::runtime::Model::load(load);
//   if (!model.ok()) return fail(model.error().text);
//   auto session = minfer::runtime::Session::create(*model);
//   if (!session.ok()) return fail(session.error().text);
//   auto options = model->generate_options();
//   options.on_text = [](std::string_view piece) { std::cout << piece << std::flush; };
//   auto answer = session->chat({{"user", "What is a mutex?"}}, options);
//
// Errors are values (minfer/error.hpp). Nothing here throws, except what a callback throws and memory that runs out while options or
// results are copied by the caller. No environment variable is read and no signal handler is set.
//
// Model files must not be shortened or overwritten while they are used: the system then reports the missing pages with SIGBUS.
#ifndef MINFER_RUNTIME_HPP_
#define MINFER_RUNTIME_HPP_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "minfer/error.hpp"

namespace minfer::runtime {

// What to load, and with what. Later members win over earlier ones.
struct LoadOptions {
  std::string config_file;  // YAML with the keys of configs/default.yaml; empty: the defaults. The keys below `prompt` are not used
  std::string model;        // instead of its key `model`: a GGUF file (the first of a split one), or a name in model_dir
  std::string model_dir;    // where models given by name lie; empty: nowhere
  std::vector<std::string> backends;                          // instead of `backends`: names, best first
  std::vector<std::pair<std::string, std::string>> settings;  // any single-valued key: {"context.n_ctx", "8192"}
  std::map<std::string, std::string> backend_settings;        // for every backend that has the option: {"threads", "8"}
  std::vector<std::string> plugin_dirs;                       // searched before <program>/plugins and the installation
  std::function<void(std::string_view line)> on_notice;       // lines for people; may come from any thread that loads or runs
};

enum class FinishReason {
  kEndOfGeneration,  // the model ended its answer
  kStopString,       // one of `stop` came; it is not part of the text
  kLength,           // n_predict tokens
  kContextFull,
  kCancelled,
};

// How to generate. Model::generate_options() fills it from the configuration; the values here are the defaults of one. What has no
// member here (other keys of `sampling`, n_batch, context shift) is as the configuration of the model says.
struct GenerateOptions {
  int32_t n_predict = 512;  // tokens at most; 0: read the prompt only; -1: until the context is full
  std::vector<std::string> stop;
  uint64_t seed = 42;           // the same seed gives the same text
  float temperature = 0.8f;     // 0: always the most likely token
  uint32_t top_k = 40;          // 0: off
  float top_p = 0.95f;          // 1: off
  float min_p = 0.0f;           // 0: off
  float repeat_penalty = 1.1f;  // 1: off
  uint32_t n_keep = 0;          // tokens at the beginning (the system message) that a context shift never drops; BOS is kept always

  // Set to true by any thread or signal handler, ends the generation: between two tokens, or inside a step, between two phases of a
  // backend's work. Must outlive the call. Never set or cleared by the library, so one flag may serve several generations.
  const std::atomic<bool>* cancel = nullptr;
  // Called on the thread that generates. A callback may set the flag above; it must not use the session. What it throws passes
  // through; the session stays usable.
  std::function<void(std::string_view text)> on_text;            // whole characters of the answer as they come
  std::function<void(int32_t token)> on_token;                   // each token of the answer
  std::function<void(uint32_t done, uint32_t total)> on_prompt;  // prompt tokens read, of those that were not in the session yet
};

struct Generation {
  std::string text;  // all that on_text got
  std::vector<int32_t> tokens;
  FinishReason finish = FinishReason::kLength;
  uint32_t n_prompt = 0;  // tokens of the prompt
  uint32_t n_reused = 0;  // of these: were in the session already
  double prompt_s = 0;    // seconds spent reading the prompt
  double decode_s = 0;    // and generating
};

struct Message {
  std::string role;  // as the model's template knows them: "system", "user", "assistant"
  std::string content;
};

// A loaded model: weights on their devices, tokenizer, chat template. A handle: copies share one model, which goes with the last handle
// and the last session. Immutable; any number of threads may use it.
class Model {
 public:
  // Blocks until the weights are on their devices. A file, key, backend or plugin that cannot be used is an error that says why.
  static Result<Model> load(const LoadOptions& options);

  std::string name() const;  // general.name of the file; may be empty
  uint32_t n_vocab() const;
  uint32_t n_ctx_train() const;  // positions that the model was made for
  bool has_chat_template() const;
  GenerateOptions generate_options() const;

  // Token ids of a text, without BOS. with_control_tokens: the names of control tokens in it ("<|im_end|>") count as those tokens.
  Result<std::vector<int32_t>> tokenize(std::string_view text, bool with_control_tokens = false) const;
  // The bytes of tokens; single tokens may be parts of characters.
  Result<std::string> detokenize(const std::vector<int32_t>& tokens) const;

 private:
  friend class Session;
  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// One sequence of tokens with its KV memory, on a model that it keeps alive. Movable; what was moved from may only be assigned to or
// destroyed. One thread at a time; sessions of one model may run on several threads at once: their steps (a prompt chunk or a token)
// take turns on the devices in the order of arrival, and each gives the result that it gives alone.
//
// A session remembers its tokens. Each call gives the whole prompt or conversation; what it begins with and the session still holds is
// not computed again, so a conversation that grows costs its new messages only. On the cpu backend this changes no bit of the result.
class Session {
 public:
  // n_ctx: positions, prompt and answer together, at most those of the model. 0: context.n_ctx of the configuration, or else 4096
  // or what the model has if less. Memory is taken when the first step runs.
  static Result<Session> create(const Model& model, uint32_t n_ctx = 0);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Continues a text as it stands: names of control tokens in it count as those tokens, and BOS is put in front where the model wants
  // one. Refuses an empty prompt and one that does not fit n_ctx. A cancelled or failed step leaves the session with the tokens
  // that it held before that step.
  Result<Generation> generate(std::string_view prompt, const GenerateOptions& options);
  // Answers a conversation, rendered with the template of the model file. Names of control tokens inside messages are plain text.
  // Refuses a model without a template, and what the template refuses.
  Result<Generation> chat(const std::vector<Message>& messages, const GenerateOptions& options);

  uint32_t n_ctx() const;
  uint32_t n_tokens() const;  // held by the session
  void clear();               // forgets them; the memory stays

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace minfer::runtime

#endif  // MINFER_RUNTIME_HPP_
