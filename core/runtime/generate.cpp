#include "runtime/generate.hpp"

#include <algorithm>
#include <chrono>

#include "base/out_of_memory.hpp"
#include "runtime/dry_breakers.hpp"
#include "runtime/text_stream.hpp"

namespace minfer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Drops the older half of what lies behind the positions to keep. False where that is nothing.
Result<bool> shift_context(Session& session, uint32_t n_keep, const GenerateCallbacks& callbacks) {
  const uint32_t cursor = session.cursor(0);
  const uint32_t dropped = cursor > n_keep ? (cursor - n_keep) / 2 : 0;
  if (dropped == 0) return false;
  MINFER_TRY(session.remove(0, n_keep, dropped));
  if (callbacks.on_shift) callbacks.on_shift(n_keep, dropped);
  return true;
}

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfGeneration: return "eog";
    case FinishReason::kStopString: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kContextFull: return "context";
    case FinishReason::kCancelled: return "cancelled";
  }
  return "unknown";
}

Result<uint32_t> decide_n_ctx(std::optional<uint32_t> requested, uint32_t default_n_ctx, uint32_t n_prompt, uint32_t n_ctx_train,
                              std::string* note) {
  if (n_prompt > n_ctx_train)
    return invalid("the prompt has {} tokens, the model's context is {}; shorten the prompt", n_prompt, n_ctx_train);
  uint32_t n_ctx = requested.value_or(default_n_ctx);
  if (n_ctx > n_ctx_train) {
    if (requested) *note += text("n_ctx {} is lowered to {}, the context of the model\n", n_ctx, n_ctx_train);
    n_ctx = n_ctx_train;
  }
  if (n_prompt <= n_ctx) return n_ctx;
  if (requested) return invalid("the prompt has {} tokens, n_ctx is {}; raise n_ctx or shorten the prompt", n_prompt, n_ctx);
  *note += text("n_ctx {} is raised to {}, the length of the prompt\n", n_ctx, n_prompt);
  return n_prompt;
}

Result<sample::Sampler> make_sampler(const GenerateOptions& options, const Tokenizer& tokenizer, const Session& session) {
  sample::SamplerParams sampling = options.sampling;
  if (sampling.dry_multiplier > 0.0f) {
    MINFER_ASSIGN(sampling.dry_breakers, dry_breakers(tokenizer, options.dry_sequence_breakers));
  }
  return sample::Sampler::create(sampling, static_cast<int32_t>(session.model().info().n_vocab), session.cparams().n_ctx);
}

Result<Logits> prefill(Session& session, SeqId seq, std::span<const int32_t> tokens, uint32_t n_batch, uint32_t n_out,
                       const GenerateCallbacks& callbacks) {
  if (n_batch == 0) return invalid("n_batch must be at least 1");
  Logits logits;
  if (callbacks.on_prefill) callbacks.on_prefill(0, static_cast<uint32_t>(tokens.size()));
  for (size_t begin = 0; begin < tokens.size(); begin += n_batch) {
    const size_t count = std::min<size_t>(n_batch, tokens.size() - begin);
    const bool last = begin + count == tokens.size();
    const SeqChunk chunk{seq, tokens.subspan(begin, count), last ? n_out : 0};
    MINFER_ASSIGN(logits, session.forward({&chunk, 1}, callbacks.should_stop ? &callbacks.should_stop : nullptr));
    if (callbacks.on_step) callbacks.on_step();
    if (callbacks.on_prefill) callbacks.on_prefill(static_cast<uint32_t>(begin + count), static_cast<uint32_t>(tokens.size()));
  }
  return logits;
}

namespace {

Result<GenerateResult> run_loop(Session& session, const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                                const GenerateOptions& options, const GenerateCallbacks& callbacks) {
  if (prompt.empty()) return invalid("the prompt is empty");
  if (options.n_predict < -1) return invalid("n_predict {} must be -1 (until the context is full), 0 or more", options.n_predict);
  if (options.context_shift && options.n_predict == -1)
    return invalid("n_predict -1 (until the context is full) never ends with context shift on; give the number of tokens wanted");
  const uint32_t n_ctx = session.cparams().n_ctx;
  if (prompt.size() > n_ctx) return invalid("the prompt has {} tokens, n_ctx is {}", prompt.size(), n_ctx);
  const uint32_t n_held = session.cursor(0);
  if (n_held >= prompt.size()) return invalid("the sequence holds {} tokens, the prompt has {}", n_held, prompt.size());
  MINFER_ASSIGN(sample::Sampler sampler, make_sampler(options, tokenizer, session));
  sampler.accept(prompt);

  GenerateResult result;
  result.n_prompt = static_cast<uint32_t>(prompt.size());
  result.n_reused = n_held;
  TextStream stream(options.stop, callbacks.on_text, result.text);
  const StopCheck* should_stop = callbacks.should_stop ? &callbacks.should_stop : nullptr;
  const auto cancelled = [&](const Error& error) { return error.code == ErrorCode::kCancelled && should_stop; };

  const auto prefill_start = Clock::now();
  auto first = prefill(session, 0, std::span(prompt).subspan(n_held), options.n_batch, options.n_predict == 0 ? 0 : 1, callbacks);
  result.prefill_s = seconds_since(prefill_start);
  if (!first.ok()) {
    if (!cancelled(first.error())) return first.error();
    result.finish = FinishReason::kCancelled;
    return result;
  }
  if (callbacks.on_token)
    for (uint32_t i = 0; i < prompt.size(); ++i) callbacks.on_token(i, prompt[i]);
  Logits logits = *first;

  const auto decode_start = Clock::now();
  const auto limit = options.n_predict < 0 ? UINT32_MAX : static_cast<uint32_t>(options.n_predict);
  const bool begins_with_bos = tokenizer.vocabulary().bos() == static_cast<TokenId>(prompt[0]);
  const uint32_t n_keep = std::max<uint32_t>(options.n_keep, begins_with_bos);
  while (result.tokens.size() < limit) {
    if (session.cursor(0) >= n_ctx && !options.context_shift) {  // the third gate against positions beyond the context
      result.finish = FinishReason::kContextFull;
      break;
    }
    if (should_stop && (*should_stop)()) {
      result.finish = FinishReason::kCancelled;
      break;
    }
    const auto sample_start = Clock::now();
    MINFER_ASSIGN(const int32_t token, sampler.sample(logits.row(0)));
    result.sample_s += seconds_since(sample_start);
    if (tokenizer.is_end_of_generation(static_cast<TokenId>(token))) {
      result.finish = FinishReason::kEndOfGeneration;
      break;
    }
    if (session.cursor(0) >= n_ctx) {  // room for the token, whose logits were read before
      MINFER_ASSIGN(const bool shifted, shift_context(session, n_keep, callbacks));
      if (!shifted) {
        result.finish = FinishReason::kContextFull;
        break;
      }
      ++result.n_shifts;
    }
    sampler.accept(token);
    result.tokens.push_back(token);
    if (callbacks.on_token) callbacks.on_token(session.cursor(0), token);
    MINFER_ASSIGN(const std::string_view bytes, tokenizer.token_bytes(static_cast<TokenId>(token)));
    if (stream.push(bytes)) {
      result.finish = FinishReason::kStopString;
      break;
    }
    if (result.tokens.size() >= limit) break;  // its logits would be thrown away
    const auto forward_start = Clock::now();
    const SeqChunk chunk{0, {&token, 1}, 1};
    auto next = session.forward({&chunk, 1}, should_stop);
    result.forward_s += seconds_since(forward_start);
    ++result.n_forwards;
    if (!next.ok()) {
      if (!cancelled(next.error())) return next.error();
      result.finish = FinishReason::kCancelled;
      break;
    }
    if (callbacks.on_step) callbacks.on_step();
    logits = *next;
  }
  if (stream.flush() && result.finish != FinishReason::kCancelled) result.finish = FinishReason::kStopString;
  result.decode_s = seconds_since(decode_start);
  return result;
}

}  // namespace

Result<GenerateResult> generate(Session& session, const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                                const GenerateOptions& options, const GenerateCallbacks& callbacks) {
  return catch_out_of_memory([&] { return run_loop(session, tokenizer, prompt, options, callbacks); });
}

}  // namespace minfer
