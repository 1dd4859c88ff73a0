#include "runtime/conversation.hpp"

#include <algorithm>
#include <chrono>

#include "base/out_of_memory.hpp"
#include "runtime/text_stream.hpp"

namespace minfer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Removes the oldest user message and what answers it. False where the last user message is the only one.
bool drop_oldest_turn(std::vector<ChatMessage>& messages) {
  const auto is_user = [](const ChatMessage& m) { return m.role == "user"; };
  const auto first = std::find_if(messages.begin(), messages.end(), is_user);
  if (first == messages.end()) return false;
  const auto second = std::find_if(first + 1, messages.end(), is_user);
  if (second == messages.end()) return false;
  messages.erase(first, second);
  return true;
}

}  // namespace

Conversation::Conversation(ChatEngine& engine, const ChatText& text, sample::Sampler sampler, ConversationOptions options,
                           std::optional<std::string> system)
    : engine_(engine), text_(text), sampler_(std::move(sampler)), options_(std::move(options)) {
  if (system) messages_.push_back({"system", text_.as_read(*system)});
}

Result<TurnResult> Conversation::user_turn(const std::string& message, const TurnCallbacks& callbacks) {
  return catch_out_of_memory([&]() -> Result<TurnResult> {
    const std::vector<ChatMessage> before = messages_;
    messages_.push_back({"user", text_.as_read(message)});
    return turn_or_back_to(before, callbacks);
  });
}

Result<TurnResult> Conversation::regenerate(const TurnCallbacks& callbacks) {
  return catch_out_of_memory([&]() -> Result<TurnResult> {
    if (messages_.empty() || messages_.back().role != "assistant") return invalid("there is no reply to replace");
    const std::vector<ChatMessage> before = messages_;
    messages_.pop_back();
    return turn_or_back_to(before, callbacks);
  });
}

Status Conversation::undo() {
  const auto last_user = std::find_if(messages_.rbegin(), messages_.rend(), [](const ChatMessage& m) { return m.role == "user"; });
  if (last_user == messages_.rend()) return invalid("there is no turn to take back");
  messages_.erase(last_user.base() - 1, messages_.end());
  reply_start_ = 0;
  return follow_rendering();
}

Status Conversation::clear() {
  const auto first = std::find_if(messages_.begin(), messages_.end(), [](const ChatMessage& m) { return m.role != "system"; });
  messages_.erase(first, messages_.end());
  return go_back_to(0);
}

Status Conversation::set_system(const std::string& message) {
  if (!messages_.empty() && messages_.front().role == "system")
    messages_.front().content = text_.as_read(message);
  else
    messages_.insert(messages_.begin(), {"system", text_.as_read(message)});
  return go_back_to(0);  // it stands first
}

ConversationState Conversation::state() const {
  const auto tokens = mirror_.tokens();
  return {messages_, {tokens.begin(), tokens.end()}, n_bos_, reply_start_, sampler_.state()};
}

Status Conversation::restore(const ConversationState& state) {
  const size_t n_tokens = state.tokens.size();
  if (engine_.cursor() != n_tokens) return invalid("the conversation has {} tokens, the sequence holds {}", n_tokens, engine_.cursor());
  if (state.n_bos > n_tokens || state.reply_start > n_tokens)
    return invalid("the conversation has {} tokens, its reply begins at {}", n_tokens, state.reply_start);
  TokenMirror mirror;
  for (size_t i = 0; i < n_tokens; ++i) {
    MINFER_ASSIGN(const std::string_view bytes, text_.token_bytes(state.tokens[i]));
    mirror.push(state.tokens[i], i < state.n_bos ? std::string_view() : bytes);
  }
  MINFER_TRY(sampler_.restore(state.sampler));
  messages_ = state.messages;
  mirror_ = std::move(mirror);
  n_bos_ = state.n_bos;
  reply_start_ = state.reply_start;
  return follow_rendering();  // of another template, say
}

Result<TurnResult> Conversation::turn_or_back_to(const std::vector<ChatMessage>& before, const TurnCallbacks& callbacks) {
  auto result = run_turn(callbacks);
  const bool read = result.ok() && (result->finish != FinishReason::kCancelled || reply_start_ > 0);
  if (!read) messages_ = before;
  MINFER_TRY(follow_rendering());
  if (result.ok()) result->read = read;
  return result;
}

// The messages end with the user's. On success they end with the reply, unless the turn was interrupted before it began (reply_start_ 0).
Result<TurnResult> Conversation::run_turn(const TurnCallbacks& callbacks) {
  MINFER_ASSIGN(RenderedChat chat, text_.render(messages_, true));
  TurnResult result;
  MINFER_ASSIGN(result.n_dropped, make_it_fit(chat, callbacks));
  const auto prefill_start = Clock::now();
  const auto logits = read_prompt(chat, callbacks, result);
  result.prefill_s = seconds_since(prefill_start);
  if (!logits.ok()) {
    if (logits.error().code != ErrorCode::kCancelled || !callbacks.should_stop) return logits.error();
    result.finish = FinishReason::kCancelled;
    return result;
  }
  const auto decode_start = Clock::now();
  MINFER_TRY(reply(*logits, callbacks, result));
  result.decode_s = seconds_since(decode_start);
  messages_.push_back({"assistant", result.text});
  return result;
}

// What the KV holds of a rendering stays, whatever tokens it is cut into: a reply's are those that were generated. one_at_least: the last
// token of the rendering is computed anyway, for its logits.
Result<Conversation::Missing> Conversation::missing_tokens(const RenderedChat& chat, bool one_at_least) const {
  Missing missing;
  const size_t common = common_prefix(chat.text, mirror_.bytes());
  if (mirror_.size() > 0 && common == mirror_.bytes().size() && common + one_at_least <= chat.text.size()) {
    missing.n_kept = mirror_.size();
    missing.with_bos = n_bos_ > 0;
    MINFER_ASSIGN(missing.tokens, text_.encode(chat, common));
    return missing;
  }
  MINFER_ASSIGN(const std::vector<int32_t> all, text_.encode(chat, 0));
  if (all.empty()) return invalid("the chat template renders nothing");
  const auto bos = text_.missing_bos(all);
  missing.with_bos = bos.has_value();
  // They part at the last place where a token ends in both: a control token of the rendering must not be torn by what was kept of another.
  size_t end = 0, n_same = 0;
  if (missing.with_bos == (n_bos_ > 0)) {
    for (size_t i = 0;; ++i) {
      const uint32_t n_held = mirror_.tokens_within(end);
      if (mirror_.byte_end(n_held) == end) {
        missing.n_kept = n_held;
        n_same = i;
      }
      if (i + one_at_least >= all.size()) break;
      MINFER_ASSIGN(const std::string_view bytes, text_.token_bytes(all[i]));
      if (chat.text.compare(end, bytes.size(), bytes) != 0) break;  // the tokenizer reads it in another form
      end += bytes.size();
      if (end > common) break;
    }
  }
  if (bos && missing.n_kept == 0) missing.tokens.push_back(*bos);
  missing.tokens.insert(missing.tokens.end(), all.begin() + static_cast<std::ptrdiff_t>(n_same), all.end());
  return missing;
}

// Drops the oldest turns until the rendering leaves room for a reply, and takes their rows out where that is possible.
Result<uint32_t> Conversation::make_it_fit(RenderedChat& chat, const TurnCallbacks& callbacks) {
  const RenderedChat full = chat;
  std::vector<ChatMessage> kept = messages_;
  const auto tokens_needed = [&]() -> Result<size_t> {
    MINFER_ASSIGN(const Missing missing, missing_tokens(chat));
    return missing.n_kept + missing.tokens.size();
  };
  uint32_t n_dropped = 0;
  while (true) {
    MINFER_ASSIGN(const size_t needed, tokens_needed());
    if (needed < engine_.n_ctx()) break;
    if (!drop_oldest_turn(kept))
      return invalid("the message does not fit: with what must stay the conversation has {} tokens, n_ctx is {}; shorten it or raise n_ctx",
                     needed, engine_.n_ctx());
    ++n_dropped;
    MINFER_ASSIGN(chat, text_.render(kept, true));
  }
  if (n_dropped == 0) return 0u;
  bool shifted = false;
  if (full.text.starts_with(mirror_.bytes()) && chat.text.size() < full.text.size()) {
    MINFER_TRY(drop_rows(chat.text, full.text.size() - chat.text.size(), &shifted));
    // The tokens that were generated may be more than those that the tokenizer would have made of their text.
    MINFER_ASSIGN(const size_t needed, tokens_needed());
    if (needed >= engine_.n_ctx()) {
      MINFER_TRY(go_back_to(0));
      shifted = false;
    }
  }
  messages_ = std::move(kept);
  if (callbacks.on_drop) callbacks.on_drop(n_dropped, shifted);
  return n_dropped;
}

Result<std::span<const float>> Conversation::read_prompt(const RenderedChat& chat, const TurnCallbacks& callbacks, TurnResult& result) {
  MINFER_ASSIGN(const Missing missing, missing_tokens(chat));
  MINFER_TRY(go_back_to(missing.n_kept));
  reply_start_ = 0;
  n_bos_ = missing.with_bos;
  MINFER_ASSIGN(const auto logits, forward(missing.tokens, callbacks.should_stop ? &callbacks.should_stop : nullptr));
  reply_start_ = mirror_.size();
  result.n_prefilled = static_cast<uint32_t>(missing.tokens.size());
  return logits;
}

Status Conversation::reply(std::span<const float> logits, const TurnCallbacks& callbacks, TurnResult& result) {
  TextStream stream(options_.stop, callbacks.on_text, result.text);
  const StopCheck* should_stop = callbacks.should_stop ? &callbacks.should_stop : nullptr;
  const auto limit = options_.n_predict < 0 ? UINT32_MAX : static_cast<uint32_t>(options_.n_predict);
  result.finish = FinishReason::kLength;
  while (result.n_generated < limit) {
    if (engine_.cursor() >= engine_.n_ctx() && !options_.context_shift) {
      result.finish = FinishReason::kContextFull;
      break;
    }
    if (should_stop && (*should_stop)()) {
      result.finish = FinishReason::kCancelled;
      break;
    }
    MINFER_ASSIGN(const int32_t token, sampler_.sample(logits));
    if (engine_.cursor() >= engine_.n_ctx()) {  // room for the token, whose logits were read before
      bool shifted = false;
      MINFER_TRY(shift_in_reply(callbacks, result, &shifted));
      if (!shifted) {
        result.finish = FinishReason::kContextFull;
        break;
      }
    }
    const bool ends = text_.is_end_of_generation(token);
    if (!ends) {
      ++result.n_generated;
      MINFER_ASSIGN(const std::string_view bytes, text_.token_bytes(token));
      if (stream.push(bytes)) {  // what completes a stop string does not enter the KV
        result.finish = FinishReason::kStopString;
        break;
      }
    }
    const auto next = forward({&token, 1}, should_stop);
    if (!next.ok()) {
      if (next.error().code != ErrorCode::kCancelled || !should_stop) return next.error();
      result.finish = FinishReason::kCancelled;
      break;
    }
    if (ends) {
      result.finish = FinishReason::kEndOfGeneration;
      break;
    }
    logits = *next;
  }
  if (stream.flush() && result.finish != FinishReason::kCancelled) result.finish = FinishReason::kStopString;
  return {};
}

Status Conversation::shift_in_reply(const TurnCallbacks& callbacks, TurnResult& result, bool* shifted) {
  std::vector<ChatMessage> kept = messages_;
  if (!drop_oldest_turn(kept)) return {};
  MINFER_ASSIGN(const RenderedChat full, text_.render(messages_, true));
  MINFER_ASSIGN(const RenderedChat shorter, text_.render(kept, true));
  if (shorter.text.size() >= full.text.size()) return {};
  MINFER_TRY(drop_rows(shorter.text, full.text.size() - shorter.text.size(), shifted));
  if (!*shifted) return {};
  messages_ = std::move(kept);
  ++result.n_dropped;
  if (callbacks.on_drop) callbacks.on_drop(1, true);
  return {};
}

// Takes out of the sequence the n_bytes that it holds beyond `wanted`. Not done where that is not a whole number of tokens, or where the
// backend cannot move rows: what stands before the stretch is then still right.
Status Conversation::drop_rows(std::string_view wanted, size_t n_bytes, bool* done) {
  uint32_t first = 0, count = 0;
  *done = false;
  if (!mirror_.find_surplus(wanted, n_bytes, &first, &count)) return {};
  const Status removed = engine_.remove(first, count);
  if (!removed.ok()) {
    if (engine_.cursor() < mirror_.size()) MINFER_TRY(go_back_to(engine_.cursor()));
    const ErrorCode code = removed.error().code;
    return code == ErrorCode::kUnsupported || code == ErrorCode::kInvalidArgument ? Status() : removed;
  }
  mirror_.erase(first, count);
  reply_start_ = reply_start_ >= first + count ? reply_start_ - count : 0;
  *done = true;
  return remember_mirror();
}

Result<std::span<const float>> Conversation::forward(std::span<const int32_t> tokens, const StopCheck* should_stop) {
  std::vector<std::string_view> bytes;
  for (const int32_t token : tokens) {
    MINFER_ASSIGN(const std::string_view b, text_.token_bytes(token));
    bytes.push_back(b);
  }
  auto logits = engine_.forward(tokens, should_stop);
  if (!logits.ok()) {
    if (engine_.cursor() > mirror_.size()) MINFER_TRY(engine_.rollback(mirror_.size()));
    return logits;
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    mirror_.push(tokens[i], mirror_.size() < n_bos_ ? std::string_view() : bytes[i]);
    sampler_.accept(tokens[i]);
  }
  return logits;
}

Status Conversation::go_back_to(uint32_t n_tokens) {
  if (n_tokens == mirror_.size()) return {};
  MINFER_TRY(engine_.rollback(n_tokens));
  mirror_.truncate(n_tokens);
  n_bos_ = std::min(n_bos_, n_tokens);
  if (n_tokens < reply_start_) reply_start_ = 0;
  return remember_mirror();
}

// Penalties look back on what the context holds, and on nothing that has left it.
Status Conversation::remember_mirror() {
  sample::SamplerState state = sampler_.state();
  state.history.assign(mirror_.tokens().begin(), mirror_.tokens().end());
  return sampler_.restore(state);
}

// Goes back to where the mirror and the canonical rendering of the messages part.
Status Conversation::follow_rendering() {
  if (messages_.empty()) return go_back_to(0);
  const auto chat = text_.render(messages_, false);
  if (!chat.ok()) return go_back_to(0);
  if (chat->text.starts_with(mirror_.bytes())) return {};
  MINFER_ASSIGN(const Missing missing, missing_tokens(*chat, false));
  return go_back_to(missing.n_kept);
}

}  // namespace minfer
