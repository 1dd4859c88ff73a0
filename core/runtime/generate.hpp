// The decode loop: prefill in chunks, then sample first and forward afterwards, until a gate closes. Prints nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/session.hpp"
#include "sample/sampler.hpp"
#include "text/tokenizer.hpp"

namespace minfer {

struct GenerateOptions {
  int32_t n_predict = 512;  // 0: prefill only; -1: until the context is full
  uint32_t n_batch = 512;   // rows of a prefill chunk
  std::vector<std::string> stop;
  sample::SamplerParams sampling;                  // dry_breakers are made from the texts below
  std::vector<std::string> dry_sequence_breakers;  // texts that no repeat reaches over
  // Where the context is full: the oldest half of what lies behind the first n_keep positions (the system prompt; BOS is always kept)
  // is dropped and generation goes on. Needs an n_predict that ends it: -1 is refused.
  bool context_shift = false;
  uint32_t n_keep = 0;
};

enum class FinishReason { kEndOfGeneration, kStopString, kLength, kContextFull, kCancelled };
std::string_view finish_reason_name(FinishReason reason);  // "eog", "stop", "length", "context", "cancelled"

struct GenerateResult {
  std::string text;  // all that was emitted
  std::vector<int32_t> tokens;
  FinishReason finish = FinishReason::kLength;
  uint32_t n_prompt = 0;
  uint32_t n_reused = 0;  // tokens of the prompt that the sequence held before
  double prefill_s = 0;
  double decode_s = 0;  // sampling and forwards, prefill not counted
  double sample_s = 0;
  double forward_s = 0;  // decode steps only
  uint32_t n_forwards = 0;
  uint32_t n_shifts = 0;
};

struct GenerateCallbacks {
  std::function<void(std::string_view text)> on_text;              // whole characters, stop strings never
  std::function<void(uint32_t position, int32_t token)> on_token;  // every token that enters the sequence
  std::function<void(uint32_t done, uint32_t total)> on_prefill;   // before the first chunk and after each
  std::function<void()> on_step;                                   // after each forward, of prefill and decode
  std::function<void(uint32_t first, uint32_t dropped)> on_shift;  // positions first..first+dropped-1 have left the context
  StopCheck should_stop;                                           // polled between tokens and inside steps
};

// The context of a run, fixed once before prefill. `requested` is what the user asked for: a limit. Without it the default is
// raised to the prompt. Never beyond what the model was made for. A note for people is appended where something was changed.
Result<uint32_t> decide_n_ctx(std::optional<uint32_t> requested, uint32_t default_n_ctx, uint32_t n_prompt, uint32_t n_ctx_train,
                              std::string* note);

// The sampler of a sequence of that session.
Result<sample::Sampler> make_sampler(const GenerateOptions& options, const Tokenizer& tokenizer, const Session& session);

// Runs sequence 0 of the session on a prompt. The sequence may hold the beginning of the prompt already, but not all of it; only the
// rest is computed. When should_stop ends it, the text so far is the result.
Result<GenerateResult> generate(Session& session, const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                                const GenerateOptions& options, const GenerateCallbacks& callbacks);

// Appends tokens to a sequence in chunks; logits of the last n_out of them, which must all fall into the last chunk.
Result<Logits> prefill(Session& session, SeqId seq, std::span<const int32_t> tokens, uint32_t n_batch, uint32_t n_out,
                       const GenerateCallbacks& callbacks = {});

}  // namespace minfer
