// A conversation's engine and text over the real things: sequence 0 of a session, and a model's template and tokenizer.
#pragma once

#include "runtime/conversation.hpp"

namespace minfer {

class SessionEngine final : public ChatEngine {
 public:
  // The session must outlive it. on_prefill: around each chunk of more than one token.
  SessionEngine(Session& session, uint32_t n_batch, GenerateCallbacks callbacks = {})
      : session_(session), n_batch_(n_batch), callbacks_(std::move(callbacks)) {}

  uint32_t n_ctx() const override { return session_.cparams().n_ctx; }
  uint32_t cursor() const override { return session_.cursor(0); }
  Result<std::span<const float>> forward(std::span<const int32_t> tokens, const StopCheck* should_stop) override;
  Status rollback(uint32_t n_positions) override { return session_.rollback(0, n_positions); }
  Status remove(uint32_t first, uint32_t count) override { return session_.remove(0, first, count); }

 private:
  Session& session_;
  uint32_t n_batch_;
  GenerateCallbacks callbacks_;  // on_step, on_token and on_prefill are used
};

class TemplateText final : public ChatText {
 public:
  // The tokenizer must outlive it.
  TemplateText(ChatTemplate chat_template, const Tokenizer& tokenizer) : template_(std::move(chat_template)), tokenizer_(tokenizer) {}

  Result<RenderedChat> render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const override;
  Result<std::vector<int32_t>> encode(const RenderedChat& chat, size_t first) const override;
  std::string as_read(const std::string& message) const override;
  std::optional<int32_t> missing_bos(std::span<const int32_t> ids) const override;
  Result<std::string_view> token_bytes(int32_t token) const override { return tokenizer_.token_bytes(static_cast<TokenId>(token)); }
  bool is_end_of_generation(int32_t token) const override { return tokenizer_.is_end_of_generation(static_cast<TokenId>(token)); }

 private:
  ChatTemplate template_;
  const Tokenizer& tokenizer_;
};

}  // namespace minfer
