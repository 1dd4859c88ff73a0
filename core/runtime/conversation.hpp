// A conversation over one sequence: messages, the mirror of the tokens in its KV, and what each turn does to both.
//
// The KV only grows: a turn computes what its rendering adds to what the KV holds. The rule that everything follows from: between
// turns the bytes of the mirror are a beginning of the canonical rendering of the messages (all of it, but for an end of turn that a reply
// which was cut short still lacks, and a newline behind it). Where the template renders the past otherwise than it was (it drops a
// thinking block, say), the sequence goes back to where both part and goes on from there.
// Knows sessions, tokenizers and templates only through ChatEngine and ChatText. Not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/generate.hpp"
#include "runtime/prompt.hpp"
#include "runtime/token_mirror.hpp"
#include "sample/sampler.hpp"

namespace minfer {

// The sequence that a conversation runs on.
class ChatEngine {
 public:
  virtual ~ChatEngine() = default;
  virtual uint32_t n_ctx() const = 0;
  virtual uint32_t cursor() const = 0;
  // Appends tokens; the logits behind the last one, valid until the next call. Fails with kCancelled when should_stop says so. After any
  // failure the cursor stands somewhere between where it was and the end of the tokens.
  virtual Result<std::span<const float>> forward(std::span<const int32_t> tokens, const StopCheck* should_stop) = 0;
  virtual Status rollback(uint32_t n_positions) = 0;
  // Takes positions out, the later ones slide down. After a failure the cursor is where it was or at `first`.
  virtual Status remove(uint32_t first, uint32_t count) = 0;
};

// The template and the tokenizer of a model.
class ChatText {
 public:
  virtual ~ChatText() = default;
  virtual Result<RenderedChat> render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const = 0;
  // Ids of the bytes from `first` on, without BOS.
  virtual Result<std::vector<int32_t>> encode(const RenderedChat& chat, size_t first) const = 0;
  // A message as the tokenizer reads it: in its normal form, without bytes that it has no token for. What it renders to has these bytes,
  // and so have the tokens.
  virtual std::string as_read(const std::string& message) const = 0;
  // BOS, where the model wants one and the ids do not begin with it.
  virtual std::optional<int32_t> missing_bos(std::span<const int32_t> ids) const = 0;
  virtual Result<std::string_view> token_bytes(int32_t token) const = 0;
  virtual bool is_end_of_generation(int32_t token) const = 0;
};

struct ConversationOptions {
  int32_t n_predict = 512;  // of a reply; -1: until the context is full
  std::vector<std::string> stop;
  bool context_shift = false;  // a reply that fills the context drops the oldest turns and goes on
};

struct TurnCallbacks {
  std::function<void(std::string_view text)> on_text;           // whole characters, stop strings never
  std::function<void(uint32_t n_turns, bool shifted)> on_drop;  // oldest turns were dropped; shifted: the rest was not computed again
  StopCheck should_stop;                                        // polled between tokens and inside steps
};

struct TurnResult {
  std::string text;
  FinishReason finish = FinishReason::kLength;
  bool read = true;  // false: interrupted before the reply began; the conversation is as it was before the turn
  uint32_t n_prefilled = 0;
  uint32_t n_generated = 0;  // the end-of-generation token is not counted
  uint32_t n_dropped = 0;    // turns
  double prefill_s = 0;
  double decode_s = 0;
};

// Everything that a conversation is beside the rows in the KV: with them it goes on bit for bit.
struct ConversationState {
  std::vector<ChatMessage> messages;
  std::vector<int32_t> tokens;  // of the KV, in order
  uint32_t n_bos = 0;           // leading tokens that the rendering does not hold
  uint32_t reply_start = 0;     // where the last reply begins
  sample::SamplerState sampler;
};

class Conversation {
 public:
  // Engine and text must outlive it; the sequence must be empty.
  Conversation(ChatEngine& engine, const ChatText& text, sample::Sampler sampler, ConversationOptions options,
               std::optional<std::string> system);

  // A turn: the user's message and the reply. A refusal (what cannot be rendered or does not fit, although every turn that can be
  // dropped was; a device's failure) changes no message. An interruption while the message is read takes the message back too
  // (finish kCancelled, no text); one inside the reply keeps what there is of it.
  Result<TurnResult> user_turn(const std::string& message, const TurnCallbacks& callbacks);
  // Another reply to the last message: the sequence goes back to where the reply began.
  Result<TurnResult> regenerate(const TurnCallbacks& callbacks);
  // Takes the last turn back.
  Status undo();
  // All messages but the system message go; random numbers go on.
  Status clear();
  Status set_system(const std::string& message);

  const std::vector<ChatMessage>& messages() const { return messages_; }
  const TokenMirror& mirror() const { return mirror_; }
  ConversationState state() const;
  // The sequence must hold exactly the tokens of the state. Refuses, changing nothing, a state that contradicts itself. What the template
  // does not render from its messages leaves the sequence again.
  Status restore(const ConversationState& state);

 private:
  Result<TurnResult> turn_or_back_to(const std::vector<ChatMessage>& before, const TurnCallbacks& callbacks);
  Result<TurnResult> run_turn(const TurnCallbacks& callbacks);
  Result<std::span<const float>> read_prompt(const RenderedChat& chat, const TurnCallbacks& callbacks, TurnResult& result);
  Result<uint32_t> make_it_fit(RenderedChat& chat, const TurnCallbacks& callbacks);
  struct Missing {
    std::vector<int32_t> tokens;  // what the KV lacks of a rendering
    uint32_t n_kept = 0;          // how many of the tokens in the KV stay
    bool with_bos = false;        // the rendering's tokens have a BOS in front that is not in its text
  };
  Result<Missing> missing_tokens(const RenderedChat& chat, bool one_at_least = true) const;
  Status reply(std::span<const float> logits, const TurnCallbacks& callbacks, TurnResult& result);
  Status shift_in_reply(const TurnCallbacks& callbacks, TurnResult& result, bool* shifted);
  Status drop_rows(std::string_view wanted, size_t n_bytes, bool* done);
  Result<std::span<const float>> forward(std::span<const int32_t> tokens, const StopCheck* should_stop);
  Status go_back_to(uint32_t n_tokens);
  Status remember_mirror();
  Status follow_rendering();

  ChatEngine& engine_;
  const ChatText& text_;
  sample::Sampler sampler_;
  ConversationOptions options_;
  std::vector<ChatMessage> messages_;
  TokenMirror mirror_;
  uint32_t n_bos_ = 0;
  uint32_t reply_start_ = 0;
};

}  // namespace minfer
