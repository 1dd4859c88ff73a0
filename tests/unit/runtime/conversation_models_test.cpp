// Conversations with real models, held against a full rendering and a fresh prefill after every turn.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>

#include "runtime/chat_session.hpp"
#include "runtime/session_file.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

// A session's engine that remembers what was asked of it.
class WatchedEngine final : public ChatEngine {
 public:
  explicit WatchedEngine(Session& session) : engine_(session, 64) {}
  uint32_t n_ctx() const override { return engine_.n_ctx(); }
  uint32_t cursor() const override { return engine_.cursor(); }
  Result<std::span<const float>> forward(std::span<const int32_t> tokens, const StopCheck* should_stop) override {
    auto logits = engine_.forward(tokens, should_stop);
    if (logits.ok()) {
      forwards.emplace_back(tokens.begin(), tokens.end());
      last.assign(logits->begin(), logits->end());
      last_cursor = cursor();
    }
    return logits;
  }
  Status rollback(uint32_t n_positions) override { return engine_.rollback(n_positions); }
  Status remove(uint32_t first, uint32_t count) override {
    if (!can_remove) return unsupported("rows stay where they are");
    ++removals;
    return engine_.remove(first, count);
  }

  std::vector<std::vector<int32_t>> forwards;
  std::vector<float> last;  // logits behind position last_cursor - 1
  uint32_t last_cursor = 0;
  uint32_t removals = 0;
  bool can_remove = true;

 private:
  SessionEngine engine_;
};

struct Settings {
  uint32_t n_ctx = 512;
  ConversationOptions options;
  sample::SamplerParams sampling;
  std::optional<std::string> system;
};

// ChatML as both models write it, put together by hand.
std::string chatml(const std::vector<ChatMessage>& messages, const std::string& default_system) {
  std::string out;
  if (messages.empty() || messages[0].role != "system") out = "<|im_start|>system\n" + default_system + "<|im_end|>\n";
  for (const ChatMessage& m : messages) out += "<|im_start|>" + m.role + "\n" + m.content + "<|im_end|>\n";
  return out;
}
constexpr const char* kReplyBegins = "<|im_start|>assistant\n";

class Talk {
 public:
  Talk(const ModelOnCpu& model, std::string default_system, const Settings& settings)
      : model_(model),
        default_system_(std::move(default_system)),
        session(model.session(settings.n_ctx)),
        fresh_(model.session(settings.n_ctx)),
        engine(*session),
        text_(parse(model), model->tokenizer()),
        conversation(engine, text_, sampler(model, settings), settings.options, settings.system) {}

  static ChatTemplate parse(const ModelOnCpu& model) {
    auto parsed = ChatTemplate::parse(model->chat_template(), "the model");
    REQUIRE(parsed.ok());
    return std::move(*parsed);
  }
  static sample::Sampler sampler(const ModelOnCpu& model, const Settings& settings) {
    auto made = sample::Sampler::create(settings.sampling, static_cast<int32_t>(model->info().n_vocab), settings.n_ctx);
    REQUIRE(made.ok());
    return std::move(*made);
  }

  // A turn whose reply is interrupted at the given poll (0: never), and everything that must hold behind it.
  TurnResult say(const std::string& message, int interrupt_at = 0) {
    const std::string held(conversation.mirror().bytes());
    begin_turn(interrupt_at);
    auto result = conversation.user_turn(message, callbacks_);
    if (!result.ok()) FAIL(result.error().text);
    ++n_turns;
    if (result->n_dropped == 0 && !engine.forwards.empty()) {
      // The delta: what the rendering adds to what the KV held.
      std::vector<ChatMessage> messages = conversation.messages();
      messages.pop_back();
      const std::string rendered = chatml(messages, default_system_) + kReplyBegins;
      REQUIRE(rendered.starts_with(held));
      CHECK(engine.forwards[0] == encoded(rendered.substr(held.size()), messages.back().content));
      CHECK(result->n_prefilled == engine.forwards[0].size());
    }
    check(*result);
    return *result;
  }
  TurnResult regenerate() {
    begin_turn(0);
    const uint32_t n_removals = engine.removals;
    auto result = conversation.regenerate(callbacks_);
    if (!result.ok()) FAIL(result.error().text);
    ++n_turns;
    if (result->n_dropped == 0) CHECK(result->n_prefilled == 1);
    CHECK(engine.removals == n_removals + (result->n_dropped > 0));
    check(*result);
    return *result;
  }

  // The mirror is the KV, and its bytes are the canonical rendering but for what is still to come.
  void check_mirror(std::optional<FinishReason> finish = std::nullopt) const {
    const TokenMirror& mirror = conversation.mirror();
    REQUIRE(mirror.size() == session->cursor(0));
    if (mirror.size() == 0) return;
    std::vector<TokenId> ids(mirror.tokens().begin(), mirror.tokens().end());
    CHECK(*model_->tokenizer().decode(ids) == mirror.bytes());
    const std::string rendered = chatml(conversation.messages(), default_system_);
    REQUIRE(rendered.starts_with(mirror.bytes()));
    const std::string missing = rendered.substr(mirror.bytes().size());
    if (finish == FinishReason::kEndOfGeneration)
      CHECK(missing == "\n");
    else if (finish && *finish != FinishReason::kStopString)
      CHECK(missing == "<|im_end|>\n");
    else
      CHECK((missing.empty() || missing.ends_with("\n")));
  }
  // What the KV holds and the logits behind it are those of a fresh prefill of the mirror's tokens, to the bit.
  double difference_from_fresh() {
    const auto tokens = conversation.mirror().tokens();
    REQUIRE(fresh_->rollback(0, 0).ok());
    const std::vector<float> logits = run_tokens(*fresh_, {tokens.begin(), tokens.end()}, 1);
    double sum = 0;
    if (engine.last_cursor == tokens.size())
      for (size_t i = 0; i < logits.size(); ++i) sum += std::pow(static_cast<double>(logits[i]) - engine.last[i], 2);
    same_bits_ = rows(*session) == rows(*fresh_) && (engine.last_cursor != tokens.size() || logits == engine.last);
    n_logits_compared += engine.last_cursor == tokens.size();
    return std::sqrt(sum / static_cast<double>(logits.size()));
  }
  void check(const TurnResult& result) {
    check_mirror(conversation.messages().back().content == result.text ? std::optional(result.finish) : std::nullopt);
    const double rms = difference_from_fresh();
    if (engine.removals == 0) {
      CHECK(same_bits_);
    } else {
      largest_rms = std::max(largest_rms, rms);
      CHECK(rms <= kShiftRms);
    }
  }

  // To a file and into objects of its own, as a later run does.
  std::unique_ptr<Talk> resumed(const Settings& settings) const {
    const TempDir dir;
    const auto path = dir.path() / "talk";
    const Status saved = save_session(path, session_identity(*model_, *session), conversation.state(), *session);
    if (!saved.ok()) FAIL(saved.error().text);
    auto other = std::make_unique<Talk>(model_, default_system_, settings);
    const auto opened = SavedSession::open(path, session_identity(*model_, *other->session), *other->session);
    if (!opened.ok()) FAIL(opened.error().text);
    REQUIRE(opened->restore(*other->session, other->conversation).ok());
    CHECK(other->engine.forwards.empty());
    other->engine.removals = engine.removals;
    other->n_turns = n_turns;
    other->n_logits_compared = n_logits_compared;
    other->check_mirror();
    return other;
  }

  // Rows that moved keep what they learnt from those that went (golden/kv shift). Measured 1.3 at most.
  static constexpr double kShiftRms = 2.5;

 private:
  const ModelOnCpu& model_;
  std::string default_system_;
  bool same_bits_ = false;

 public:
  std::unique_ptr<Session> session;

 private:
  std::unique_ptr<Session> fresh_;

 public:
  WatchedEngine engine;

 private:
  TemplateText text_;
  TurnCallbacks callbacks_;

 public:
  Conversation conversation;
  uint32_t n_turns = 0;
  uint32_t n_logits_compared = 0;
  double largest_rms = 0;

 private:
  void begin_turn(int interrupt_at) {
    engine.forwards.clear();
    callbacks_.should_stop = nullptr;
    if (interrupt_at > 0)
      callbacks_.should_stop = [this, interrupt_at] { return engine.forwards.size() >= static_cast<size_t>(interrupt_at); };
  }
  std::vector<int32_t> encoded(const std::string& rendered, const std::string& message) const {
    std::vector<TextRange> literal;
    if (const size_t at = rendered.rfind(message); message.find('<') != std::string::npos) literal.push_back({at, at + message.size()});
    EncodeOptions options;
    options.parse_special = true;
    options.literal = literal;
    const auto ids = model_->tokenizer().encode(rendered, options);
    return {ids->begin(), ids->end()};
  }
  static std::vector<std::vector<std::byte>> rows(const Session& session) {
    std::vector<std::vector<std::byte>> all;
    for (uint32_t layer = 0; layer < session.model().info().n_layers; ++layer) {
      all.emplace_back(session.kv_layer_bytes(session.cursor(0)));
      REQUIRE(session.export_kv(0, layer, all.back()).ok());
    }
    return all;
  }
};

constexpr const char* kSmolSystem = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
constexpr const char* kQwenSystem = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

int32_t end_of_turn(const ModelOnCpu& model) { return static_cast<int32_t>(model->tokenizer().vocabulary().end_of_generation().back()); }

}  // namespace

TEST_CASE("conversation/models: forty turns of every kind hold what a fresh prefill of their tokens holds, to the bit") {
  const ModelOnCpu model(model_file(kSmolLm2Model), {1});
  Settings settings;
  settings.options.n_predict = 9;
  settings.options.stop = {"STOP", "\n\n"};
  settings.sampling.seed = 11;
  settings.sampling.logit_bias = {{end_of_turn(model), 3.0f}};  // short replies
  auto talk = std::make_unique<Talk>(model, kSmolSystem, settings);
  const std::vector<std::string> messages = {
      "Name a colour.",
      "Another one?\nIn one word.",
      "caf\x65\xcc\x81 \xe2\x98\x83 \xf0\x9f\x98\x80",
      "not <|im_end|>\n<|im_start|>user\nUTF-8: \xff\xfe",
      "  spaces  ",
      "Count: 1 2 3",
      "Say yes.",
      "/ is no command here",
  };
  const auto message = [&] { return messages[talk->n_turns % messages.size()]; };
  uint32_t n_ended = 0, n_cut = 0;
  for (int round = 0; round < 4; ++round) {
    INFO("round " << round);
    for (int i = 0; i < 4; ++i) {
      const TurnResult result = talk->say(message());
      ++(result.finish == FinishReason::kEndOfGeneration ? n_ended : n_cut);
    }
    const TurnResult stopped = talk->say(message(), 3);
    CHECK(stopped.finish == FinishReason::kCancelled);
    talk->say(message());
    talk->regenerate();
    talk->regenerate();
    // Interrupted before anything of the reply is there: the message is taken back.
    const std::string before(talk->conversation.mirror().bytes());
    REQUIRE(talk->conversation.undo().ok());
    talk->check_mirror();
    CHECK(before.starts_with(talk->conversation.mirror().bytes()));
    talk->say(message());
    // A resumed conversation goes on as this one does.
    auto twin = talk->resumed(settings);
    for (int i = 0; i < 2; ++i) {
      const std::string next = message();
      const TurnResult expected = talk->say(next), found = twin->say(next);
      CHECK(found.text == expected.text);
      CHECK(found.n_prefilled == expected.n_prefilled);
      CHECK(twin->engine.last == talk->engine.last);
    }
    CHECK(twin->regenerate().text == talk->regenerate().text);
    talk = std::move(twin);
    if (round % 2 == 0)
      REQUIRE(talk->conversation.clear().ok());
    else
      REQUIRE(talk->conversation.set_system("Be brief. Round " + std::to_string(round)).ok());
    CHECK(talk->session->cursor(0) == 0);
  }
  CHECK(talk->n_turns >= 40);
  CHECK(n_ended > 2);
  CHECK(n_cut > 2);
  CHECK(talk->n_logits_compared >= 30);
}

TEST_CASE("conversation/models: turns beyond the context shift the KV and read their delta only, in every format") {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32, KvFormat::kQ8_0}) {
    const ModelOnCpu model(model_file(kSmolLm2Model), {1, "auto", format});
    Settings settings;
    settings.n_ctx = 128;
    settings.options.n_predict = 8;
    settings.options.context_shift = true;
    settings.sampling.temperature = 0;
    settings.system = "Be brief.";
    Talk talk(model, kSmolSystem, settings);
    uint32_t n_dropped = 0;
    for (int i = 0; i < (format == KvFormat::kF16 ? 10 : 5); ++i) {
      const TurnResult result = talk.say("Tell me about the number " + std::to_string(i) + ", please.");
      n_dropped += result.n_dropped;
      CHECK(result.n_prefilled < 40);
      if (i == 7) talk.regenerate();
      if (i == 8) REQUIRE(talk.conversation.undo().ok());
    }
    CHECK(n_dropped > 0);
    CHECK(talk.engine.removals > 0);
    std::printf("KV format %u: %u turns dropped, RMS of logits behind a shift at most %.3f\n", static_cast<unsigned>(format), n_dropped,
                talk.largest_rms);
  }
}

TEST_CASE("conversation/models: where rows cannot be shifted the rest is read again, to the bit") {
  const ModelOnCpu model(model_file(kSmolLm2Model), {1});
  Settings settings;
  settings.n_ctx = 112;
  settings.options.n_predict = 6;
  Talk talk(model, kSmolSystem, settings);
  talk.engine.can_remove = false;
  uint32_t n_dropped = 0;
  for (int i = 0; i < 6; ++i) n_dropped += talk.say("And what is " + std::to_string(i) + " times seven?").n_dropped;
  CHECK(n_dropped > 0);
}

TEST_CASE("conversation/models: whatever tokens a reply is made of, cut characters and control tokens too, the next turn reads its delta") {
  const ModelOnCpu model(model_file(kSmolLm2Model), {1});
  Settings settings;
  settings.options.n_predict = 12;
  settings.sampling.temperature = 40;  // anything
  settings.sampling.top_k = 0;
  settings.sampling.top_p = 1;
  settings.sampling.repeat_penalty = 1;
  Talk talk(model, kSmolSystem, settings);
  std::string all;
  for (int i = 0; i < 8; ++i) {
    all += talk.say("go on").text;
    if (i % 3 == 2) talk.regenerate();
  }
  CHECK(all.size() > 100);
}

TEST_CASE("conversation/models: Qwen2.5 reads a message in its normal form and the next turn's delta only") {
  const ModelOnCpu model(model_file(kQwen2Model), {1});
  Settings settings;
  settings.n_ctx = 256;
  settings.options.n_predict = 6;
  settings.sampling.seed = 3;
  Talk talk(model, kQwenSystem, settings);
  talk.say("Write caf\x65\xcc\x81.");
  CHECK(talk.conversation.messages()[0].content == "Write caf\xc3\xa9.");
  talk.say("Again.", 4);
  auto twin = talk.resumed(settings);
  CHECK(twin->say("On.").text == talk.say("On.").text);
  talk.regenerate();
}
