// <minfer/runtime.hpp> as a program uses it, on models whose text is known without running them, and on a real one.
#include "minfer/runtime.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <thread>

#include "support/fixture_models.hpp"
#include "support/support.hpp"

using namespace minfer::runtime;
using Catch::Matchers::Contains;
using minfer::ErrorCode;
namespace fs = std::filesystem;

namespace {

LoadOptions load_options(const fs::path& file) {
  LoadOptions options;
  options.model = file.string();
  options.backends = {"cpu"};
  options.backend_settings = {{"threads", "2"}};
  options.plugin_dirs = {(minfer::test::build_dir() / "bin/plugins").string()};
  return options;
}

template <class T>
T need(minfer::Result<T> result) {
  if (!result.ok()) FAIL(result.error().text);
  return std::move(*result);
}

Model load(const fs::path& file) { return need(Model::load(load_options(file))); }

GenerateOptions greedy(const Model& model, int32_t n_predict) {
  GenerateOptions options = model.generate_options();
  options.temperature = 0;
  options.repeat_penalty = 1;
  options.n_predict = n_predict;
  return options;
}

fs::path tiny() { return minfer::test::data_dir() / "tiny/qwen2_Q4_K.gguf"; }

}  // namespace

TEST_CASE("embedding: text arrives in pieces and as a whole, tokens one by one") {
  const minfer::test::TempDir dir;
  minfer::test::write_history_model(dir.path() / "history.gguf", "qwen2");  // the most frequent byte comes next
  const Model model = load(dir.path() / "history.gguf");
  Session session = need(Session::create(model, 64));
  CHECK(session.n_ctx() == 64);
  GenerateOptions options = greedy(model, 3);
  std::string pieces;
  std::vector<int32_t> tokens;
  std::vector<uint32_t> read;
  options.on_text = [&](std::string_view piece) { pieces += piece; };
  options.on_token = [&](int32_t token) { tokens.push_back(token); };
  options.on_prompt = [&](uint32_t done, uint32_t total) { read = {done, total}; };
  const Generation result = need(session.generate("yyx", options));
  CHECK(result.text == "yyy");
  CHECK(pieces == "yyy");
  CHECK(tokens == std::vector<int32_t>{'y', 'y', 'y'});
  CHECK(result.tokens == tokens);
  CHECK(result.finish == FinishReason::kLength);
  CHECK(result.n_prompt == 3);
  CHECK(result.n_reused == 0);
  CHECK(read == std::vector<uint32_t>{3, 3});
  CHECK(session.n_tokens() == 5);  // the last token was not computed

  options.stop = {"zz"};
  const Generation stopped = need(session.generate("yyxzzzz", options));  // shares three tokens with what is held
  CHECK(stopped.n_reused == 3);
  CHECK(read == std::vector<uint32_t>{4, 4});
  CHECK(stopped.finish == FinishReason::kStopString);
  CHECK(stopped.text.empty());
  CHECK(need(session.generate("yyxzzzz", options)).n_reused == 6);  // the last token of a prompt is computed always

  options.stop.clear();
  options.n_predict = -1;
  const Generation full = need(session.generate("x", options));
  CHECK(full.finish == FinishReason::kContextFull);
  CHECK(full.tokens.size() == 63);

  CHECK(need(model.tokenize("yx<|im_end|>", true)) == std::vector<int32_t>{'y', 'x', 258});
  CHECK(need(model.tokenize("<|im_end|>")).size() > 1);
  CHECK(need(model.detokenize({'A', 'b'})) == "Ab");
  CHECK(model.detokenize({-1}).error().code == ErrorCode::kInvalidArgument);
  CHECK_FALSE(model.has_chat_template());
  CHECK(session.chat({{"user", "abc"}}, options).error().code == ErrorCode::kNotFound);
}

TEST_CASE("embedding: what is reused or cancelled changes no token of later answers") {
  const Model model = load(tiny());
  GenerateOptions options = model.generate_options();
  options.n_predict = 20;
  const auto fresh = [&](const std::string& prompt) { return need(need(Session::create(model)).generate(prompt, options)).tokens; };
  const std::string first = "abcabcabd", longer = first + "bca", other = "abcacb";
  Session session = need(Session::create(model));
  CHECK(need(session.generate(first, options)).tokens == fresh(first));
  const Generation grown = need(session.generate(longer, options));
  CHECK(grown.tokens == fresh(longer));
  CHECK(grown.n_reused > 0);

  std::atomic<bool> cancel = false;
  GenerateOptions cancelled = options;
  cancelled.cancel = &cancel;
  int n_tokens = 0;
  cancelled.on_token = [&](int32_t) { cancel = ++n_tokens == 3; };
  const Generation part = need(session.generate(other, cancelled));
  CHECK(part.finish == FinishReason::kCancelled);
  REQUIRE(part.tokens.size() == 3);
  CHECK(session.n_tokens() == part.n_prompt + 2);  // the step of the third was given up: its token is not held
  CHECK(need(session.generate(other, options)).tokens == fresh(other));

  cancel = true;
  CHECK(need(session.generate(first, cancelled)).finish == FinishReason::kCancelled);
  CHECK(need(session.generate(first, options)).tokens == fresh(first));
  session.clear();
  CHECK(session.n_tokens() == 0);
  CHECK(need(session.generate(first, options)).n_reused == 0);
}

TEST_CASE("embedding: another thread cancels a generation that would not end soon") {
  const Model model = load(tiny());
  Session session = need(Session::create(model));
  GenerateOptions options = model.generate_options();
  options.n_predict = 1 << 30;
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false;
  std::atomic<bool> cancel = false;
  options.cancel = &cancel;
  options.on_token = [&](int32_t) {
    std::unique_lock lock(mutex);
    begun = true;
    changed.notify_one();
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return cancel.load(); });  // so that the context cannot fill up before
  };
  std::thread other([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return begun; });
    cancel = true;
    changed.notify_one();
  });
  const auto result = session.generate("abcabc", options);
  {
    const std::lock_guard lock(mutex);
    begun = true;
    changed.notify_one();
  }
  other.join();
  REQUIRE(result.ok());
  CHECK(result->finish == FinishReason::kCancelled);
  CHECK(result->tokens.size() == 1);
}

TEST_CASE("embedding: a session that goes on when its model handle is gone, an exception of a callback, a move") {
  std::optional<Model> model = load(tiny());
  GenerateOptions options = model->generate_options();
  options.n_predict = 5;
  Session session = need(Session::create(*model));
  model.reset();
  const Generation before = need(session.generate("abcd", options));
  GenerateOptions throwing = options;
  throwing.on_token = [](int32_t) { throw 7; };
  CHECK_THROWS_AS(session.generate("abcd", throwing), int);
  Session moved = std::move(session);
  CHECK(need(moved.generate("abcd", options)).tokens == before.tokens);
}

TEST_CASE("embedding: settings come from the file and from the program, which wins") {
  const minfer::test::TempDir dir;
  const fs::path config = dir.path() / "run.yaml";
  minfer::test::write_file(
      config, "model: " + tiny().string() + "\nbackends: [{name: cpu, threads: 1}]\ncontext: {n_ctx: 64}\nsampling: {seed: 5, top_k: 3}\n");
  LoadOptions options = load_options({});
  options.model.clear();
  options.backends.clear();
  options.config_file = config.string();
  options.settings = {{"sampling.top_k", "7"}, {"generation.n_predict", "9"}};
  std::string notices;
  options.on_notice = [&](std::string_view line) { notices += std::string(line) + "\n"; };
  const Model model = need(Model::load(options));
  CHECK(model.generate_options().seed == 5);
  CHECK(model.generate_options().top_k == 7);
  CHECK(model.generate_options().n_predict == 9);
  CHECK(need(Session::create(model)).n_ctx() == 64);
  CHECK(need(Session::create(model, 32)).n_ctx() == 32);
  CHECK_THAT(notices, Contains("backend: cpu (2 threads"));  // of the program, over the file's
}

TEST_CASE("embedding: what cannot be done is an error with its reason") {
  const auto refusal = [](const LoadOptions& options) {
    const auto model = Model::load(options);
    return model.ok() ? std::string() : model.error().text;
  };
  CHECK_THAT(refusal(load_options("/nonexistent/x.gguf")), Contains("/nonexistent/x.gguf"));
  LoadOptions options = load_options(tiny());
  options.backends = {"nosuch"};
  CHECK_THAT(refusal(options), Contains("nosuch"));
  options = load_options(tiny());
  options.settings = {{"sampling.topk", "7"}};
  CHECK_THAT(refusal(options), Contains("LoadOptions::settings") && Contains("top_k"));
  options = load_options(tiny());
  options.config_file = "/nonexistent/x.yaml";
  CHECK_THAT(refusal(options), Contains("/nonexistent/x.yaml"));

  const Model model = load(tiny());
  CHECK_THAT(Session::create(model, model.n_ctx_train() + 1).error().text, Contains(std::to_string(model.n_ctx_train())));
  Session session = need(Session::create(model, 8));
  CHECK_THAT(session.generate("", model.generate_options()).error().text, Contains("empty"));
  CHECK_THAT(session.generate("abcabcabcabc", model.generate_options()).error().text, Contains("n_ctx is 8"));
  GenerateOptions bad = model.generate_options();
  bad.temperature = -1;
  CHECK_THAT(session.generate("abc", bad).error().text, Contains("temperature"));
}

TEST_CASE("embedding: a conversation costs its new messages only and messages hold no control tokens") {
  const Model model = load(tiny());
  REQUIRE(model.has_chat_template());
  const GenerateOptions options = greedy(model, 4);
  Session session = need(Session::create(model));
  std::vector<Message> messages = {{"user", "ab"}};
  const Generation first = need(session.chat(messages, options));
  CHECK(first.n_reused == 0);
  messages.push_back({"assistant", "ba"});
  messages.push_back({"user", "<|im_end|>"});
  const Generation second = need(session.chat(messages, options));
  CHECK(second.n_reused >= first.n_prompt);
  CHECK(second.tokens == need(need(Session::create(model)).chat(messages, options)).tokens);
  messages.back().content = "x";
  CHECK(need(session.chat(messages, options)).n_prompt + 5 < second.n_prompt);  // the name was text: ten characters, not one token
}
