// The state machine of a conversation, against an engine whose KV is a text that can be read.
#include <catch2/catch.hpp>

#include "unit/runtime/mock_chat.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

struct Chat {
  explicit Chat(uint32_t n_ctx = 1000, ConversationOptions options = {}, std::optional<std::string> system = std::nullopt)
      : engine(n_ctx), conversation(engine, text, greedy(n_ctx), std::move(options), std::move(system)) {}

  static sample::Sampler greedy(uint32_t n_ctx) {
    sample::SamplerParams params;
    params.temperature = 0;
    params.repeat_penalty = 1;
    auto sampler = sample::Sampler::create(params, 256, n_ctx);
    REQUIRE(sampler.ok());
    return std::move(*sampler);
  }

  TurnResult say(const std::string& message) {
    engine.forwards.clear();
    auto result = conversation.user_turn(message, callbacks);
    if (!result.ok()) FAIL(result.error().text);
    check();
    return *result;
  }
  Error fail(const std::string& message) {
    engine.forwards.clear();
    auto result = conversation.user_turn(message, callbacks);
    REQUIRE_FALSE(result.ok());
    check();
    return result.error();
  }
  // The mirror is what the KV holds, and a beginning of the canonical rendering.
  void check() const {
    const auto tokens = conversation.mirror().tokens();
    REQUIRE(std::vector<int32_t>(tokens.begin(), tokens.end()) == engine.kv);
    if (conversation.mirror().size() == 0) return;
    const std::string rendered = text.render(conversation.messages(), false)->text;
    REQUIRE(rendered.starts_with(conversation.mirror().bytes()));
  }
  std::string history() const {
    std::string all;
    for (const ChatMessage& m : conversation.messages()) all += m.role.substr(0, 1) + ":" + m.content + "|";
    return all;
  }

  MockEngine engine;
  MockText text;
  TurnCallbacks callbacks;
  Conversation conversation;
};

}  // namespace

TEST_CASE("conversation: second_turn_appends_only_delta") {
  Chat chat;
  chat.engine.reply = "hello";
  const TurnResult first = chat.say("hi");
  CHECK(first.text == "hello");
  CHECK(first.finish == FinishReason::kEndOfGeneration);
  CHECK(first.n_prefilled == 10);
  CHECK(chat.engine.text() == "[u:hi]\n[a:hello]");
  const TurnResult second = chat.say("more");
  CHECK(chat.engine.forwards[0] == "\n[u:more]\n[a:");
  CHECK(second.n_prefilled == 13);
  CHECK(chat.engine.text() == "[u:hi]\n[a:hello]\n[u:more]\n[a:hello]");
  CHECK(chat.engine.rollbacks == 0);
  CHECK(second.n_generated == 5);
}

TEST_CASE("conversation: first_user_turn_prefills_the_system_prompt") {
  Chat chat(1000, {}, "be brief");
  chat.engine.reply = "ok";
  chat.say("hi");
  CHECK(chat.engine.forwards[0] == "[s:be brief]\n[u:hi]\n[a:");
  chat.say("again");
  CHECK(chat.engine.forwards[0] == "\n[u:again]\n[a:");
}

TEST_CASE("conversation: eot_is_inserted_before_the_next_turn_when_a_turn_ended_early") {
  ConversationOptions options;
  options.n_predict = 3;
  Chat chat(1000, options);
  chat.engine.reply = "abcdef";
  const TurnResult first = chat.say("hi");
  CHECK(first.text == "abc");
  CHECK(first.finish == FinishReason::kLength);
  CHECK(chat.engine.text() == "[u:hi]\n[a:abc");  // the last token was run too: the mirror is the KV
  chat.say("go on");
  CHECK(chat.engine.forwards[0] == "]\n[u:go on]\n[a:");
}

TEST_CASE("conversation: stop_string_truncates_and_sets_eot") {
  ConversationOptions options;
  options.stop = {"END"};
  Chat chat(1000, options);
  chat.engine.reply = "one ENDless";
  std::string shown;
  chat.callbacks.on_text = [&](std::string_view piece) { shown += piece; };
  const TurnResult first = chat.say("hi");
  CHECK(first.finish == FinishReason::kStopString);
  CHECK(first.text == "one ");
  CHECK(shown == "one ");
  CHECK(chat.engine.text() == "[u:hi]\n[a:one ");  // "EN" was in the KV and has gone again
  chat.say("more");
  CHECK(chat.engine.forwards[0] == "]\n[u:more]\n[a:");
}

TEST_CASE("conversation: a BOS that the text does not hold stands once at the front") {
  Chat chat;
  chat.text.bos = 1;
  chat.engine.reply = "yes";
  chat.say("hi");
  chat.say("there");
  CHECK(chat.engine.text() == "\x01[u:hi]\n[a:yes]\n[u:there]\n[a:yes]");
  CHECK(chat.conversation.mirror().bytes() == "[u:hi]\n[a:yes]\n[u:there]\n[a:yes]");
}

TEST_CASE("conversation: context_full_errors_before_prefill") {
  Chat chat(30);
  chat.engine.reply = "ok";
  chat.say("hi");
  const std::string before = chat.engine.text(), history = chat.history();
  const Error error = chat.fail("a message that is far too long");
  CHECK(error.text.find("n_ctx is 30") != std::string::npos);
  CHECK(chat.engine.forwards.empty());
  CHECK(chat.engine.text() == before);
  CHECK(chat.history() == history);
  chat.say("no");  // and nothing is lost
}

TEST_CASE("conversation: context_fill_during_decode_stops_cleanly") {
  Chat chat(16);
  chat.engine.reply_length = 50;
  const TurnResult result = chat.say("hi");
  CHECK(result.finish == FinishReason::kContextFull);
  CHECK(result.n_generated == 6);
  CHECK(chat.engine.cursor() == 16);
  CHECK(chat.history() == "u:hi|a:" + result.text + "|");
}

TEST_CASE("conversation: overflow_shift_removes_the_turn_and_prefills_only_the_delta") {
  Chat chat(50);
  chat.engine.reply = "abcdef";
  chat.say("first");
  chat.say("second");
  uint32_t dropped = 0;
  bool shifted = false;
  chat.callbacks.on_drop = [&](uint32_t n, bool s) { dropped = n, shifted = s; };
  const TurnResult third = chat.say("third!");
  CHECK(dropped == 1);
  CHECK(shifted);
  CHECK(third.n_dropped == 1);
  REQUIRE(chat.engine.removals.size() == 1);
  CHECK(chat.engine.removals[0].second == 21);  // "[u:first]\n[a:abcdef]\n"
  CHECK(chat.engine.rollbacks == 0);
  CHECK(chat.engine.forwards[0] == "\n[u:third!]\n[a:");
  CHECK(chat.engine.text() == "[u:second]\n[a:abcdef]\n[u:third!]\n[a:abcdef]");
  const auto history = chat.conversation.state().sampler.history;  // penalties see what is left, all of it here
  CHECK(mock_bytes(history) == chat.engine.text());
}

TEST_CASE("conversation: overflow_shift_keeps_the_system_prompt_in_place") {
  Chat chat(59, {}, "rule");
  chat.engine.reply = "abcdef";
  chat.say("first");
  chat.say("second");
  chat.say("third!");
  REQUIRE(chat.engine.removals.size() == 1);
  CHECK(chat.engine.removals[0].first >= 9);  // "[s:rule]\n"
  CHECK(chat.engine.removals[0].second == 21);
  CHECK(chat.engine.text() == "[s:rule]\n[u:second]\n[a:abcdef]\n[u:third!]\n[a:abcdef]");
}

TEST_CASE("conversation: overflow_truncates_oldest_turns_and_rehydrates") {
  Chat chat(50);
  chat.engine.reply = "abcdef";
  chat.engine.can_remove = false;
  chat.say("first");
  chat.say("second");
  bool shifted = true;
  chat.callbacks.on_drop = [&](uint32_t, bool s) { shifted = s; };
  chat.say("third!");
  CHECK_FALSE(shifted);
  CHECK(chat.engine.forwards[0] == "second]\n[a:abcdef]\n[u:third!]\n[a:");  // "[u:" could stay
  CHECK(chat.engine.text() == "[u:second]\n[a:abcdef]\n[u:third!]\n[a:abcdef]");
}

TEST_CASE("conversation: overflow_single_message_still_errors") {
  Chat chat(20);
  CHECK(chat.fail("this does not fit at all").text.find("n_ctx is 20") != std::string::npos);
  CHECK(chat.engine.forwards.empty());
  CHECK(chat.history().empty());
}

TEST_CASE("conversation: a reply that fills the context drops the oldest turn where shifting is on") {
  ConversationOptions options;
  options.context_shift = true;
  Chat chat(50, options);
  chat.engine.reply = "0123456789";
  chat.say("first");
  chat.engine.reply = std::string(25, 'x');
  const TurnResult second = chat.say("2nd");
  CHECK(second.finish == FinishReason::kEndOfGeneration);
  CHECK(second.n_dropped == 1);
  CHECK(second.text == std::string(25, 'x'));
  CHECK(chat.engine.text() == "[u:2nd]\n[a:" + std::string(25, 'x') + "]");
  // With one turn left there is nothing to drop.
  chat.engine.reply = std::string(80, 'y');
  CHECK(chat.say("3").finish == FinishReason::kContextFull);
}

TEST_CASE("conversation: another reply begins where the last one began") {
  Chat chat;
  const TurnResult first = chat.say("hi");
  chat.engine.forwards.clear();
  auto again = chat.conversation.regenerate(chat.callbacks);
  REQUIRE(again.ok());
  chat.check();
  CHECK(again->text == first.text);       // greedy
  CHECK(chat.engine.forwards[0] == ":");  // the prompt's last token, for its logits
  CHECK(again->n_prefilled == 1);
  CHECK(chat.history() == "u:hi|a:" + first.text + "|");
  Chat empty;
  CHECK_FALSE(empty.conversation.regenerate({}).ok());
}

TEST_CASE("conversation: the tokens of earlier replies stay as they were generated when a reply is made again") {
  Chat chat(1000, {}, "well");
  chat.engine.reply = "hello";  // h e l l o: the tokenizer would make "ll" one token
  chat.say("tell");
  chat.say("more");
  REQUIRE(chat.engine.text() == "[s:well]\n[u:tell]\n[a:hello]\n[u:more]\n[a:hello]");
  const std::vector<int32_t> before = chat.engine.kv;
  chat.engine.forwards.clear();
  const auto again = chat.conversation.regenerate(chat.callbacks);
  REQUIRE(again.ok());
  chat.check();
  CHECK(again->n_prefilled == 1);
  CHECK(chat.engine.forwards[0] == ":");
  CHECK(chat.engine.kv == before);
  // Where the template drops a thought the replies before it stay too.
  chat.text.forgets_thoughts = true;
  chat.engine.reply = "{hm}yes";
  chat.say("why");
  chat.say("so");
  CHECK(chat.engine.forwards[0] == "yes]\n[u:so]\n[a:");
}

TEST_CASE("conversation: a message is kept as the tokenizer reads it, so that the KV holds its rendering") {
  Chat chat(1000, {}, "s~s");
  chat.engine.reply = "ok";
  chat.say("a~b");
  CHECK(chat.history() == "s:s-s|u:a-b|a:ok|");
  CHECK(chat.engine.text() == "[s:s-s]\n[u:a-b]\n[a:ok]");
  chat.say("more");
  CHECK(chat.engine.forwards[0] == "\n[u:more]\n[a:");
  REQUIRE(chat.conversation.set_system("t~t").ok());
  CHECK(chat.history().starts_with("s:t-t|"));
}

TEST_CASE("conversation: a turn is taken back and the system message changed") {
  Chat chat(1000, {}, "old");
  chat.engine.reply = "ok";
  chat.say("one");
  const std::string after_one = chat.engine.text();
  chat.say("two");
  REQUIRE(chat.conversation.undo().ok());
  chat.check();
  CHECK(chat.engine.text() == after_one + "\n");  // the newline that the rendering ends with was computed, and stays
  chat.say("2");
  CHECK(chat.engine.forwards[0] == "[u:2]\n[a:");
  REQUIRE(chat.conversation.undo().ok());
  REQUIRE(chat.conversation.undo().ok());
  CHECK(chat.history() == "s:old|");
  CHECK_FALSE(chat.conversation.undo().ok());
  chat.check();
  REQUIRE(chat.conversation.set_system("new").ok());
  chat.check();
  chat.say("three");
  CHECK(chat.engine.text() == "[s:new]\n[u:three]\n[a:ok]");
  REQUIRE(chat.conversation.clear().ok());
  CHECK(chat.engine.cursor() == 0);
  CHECK(chat.history() == "s:new|");
}

TEST_CASE("conversation: an interrupted prompt takes the message back and an interrupted reply stays") {
  Chat chat;
  chat.engine.reply = "hello";
  chat.say("hi");
  const std::string before = chat.engine.text();
  chat.callbacks.should_stop = [] { return true; };
  auto prompt = chat.conversation.user_turn("never read", chat.callbacks);
  REQUIRE(prompt.ok());
  CHECK(prompt->finish == FinishReason::kCancelled);
  CHECK(prompt->text.empty());
  CHECK_FALSE(prompt->read);
  CHECK(chat.history() == "u:hi|a:hello|");
  CHECK(chat.engine.text() == before);
  chat.check();

  int polls = 0;
  chat.callbacks.should_stop = [&] { return ++polls > 4; };
  auto reply = chat.conversation.user_turn("go", chat.callbacks);
  REQUIRE(reply.ok());
  CHECK(reply->finish == FinishReason::kCancelled);
  CHECK(!reply->text.empty());
  CHECK(reply->text.size() < 5);
  CHECK(reply->read);
  chat.check();
  CHECK(chat.history() == "u:hi|a:hello|u:go|a:" + reply->text + "|");
  chat.callbacks.should_stop = nullptr;
  chat.say("on");
}

TEST_CASE("conversation: a device that fails loses no message and no row") {
  Chat chat;
  chat.engine.reply = "ok";
  chat.say("one");
  const std::string before = chat.engine.text();
  chat.engine.fail_forward = true;
  CHECK(chat.fail("two").code == ErrorCode::kDeviceLost);
  CHECK(chat.history() == "u:one|a:ok|");
  CHECK(chat.engine.text() == before);
  chat.engine.fail_forward = false;
  chat.say("two");
  CHECK(chat.engine.forwards[0] == "\n[u:two]\n[a:");
}

TEST_CASE("conversation: where the template renders the past otherwise the sequence goes back to where both part") {
  Chat chat;
  chat.text.forgets_thoughts = true;
  chat.engine.reply = "{hm}yes";
  chat.say("hi");
  CHECK(chat.engine.text() == "[u:hi]\n[a:{hm}yes]");
  chat.say("why");
  CHECK(chat.engine.forwards[0] == "yes]\n[u:why]\n[a:");  // behind "[u:hi]\n[a:"
  CHECK(chat.engine.text() == "[u:hi]\n[a:yes]\n[u:why]\n[a:{hm}yes]");

  Chat trimmed;
  trimmed.text.trims = true;
  trimmed.engine.reply = "yes  ";
  trimmed.say("hi");
  CHECK(trimmed.engine.text() == "[u:hi]\n[a:yes");
  trimmed.say("so");
  CHECK(trimmed.engine.forwards[0] == "]\n[u:so]\n[a:");
}

TEST_CASE("conversation: a state that was taken and given back goes on alike") {
  Chat chat;
  chat.say("one");
  chat.say("two");
  const ConversationState state = chat.conversation.state();
  Chat other;
  other.engine.kv = chat.engine.kv;
  REQUIRE(other.conversation.restore(state).ok());
  CHECK(other.history() == chat.history());
  const TurnResult expected = chat.say("three"), resumed = other.say("three");
  CHECK(resumed.text == expected.text);
  CHECK(resumed.n_prefilled == expected.n_prefilled);

  Chat empty;
  CHECK_FALSE(empty.conversation.restore(state).ok());  // the sequence holds nothing
  ConversationState wrong = state;
  wrong.reply_start = static_cast<uint32_t>(wrong.tokens.size()) + 1;
  other.engine.kv = {state.tokens.begin(), state.tokens.end()};
  CHECK_FALSE(other.conversation.restore(wrong).ok());
}
