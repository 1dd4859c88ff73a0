#include "runtime/chat_session.hpp"

#include <algorithm>

namespace minfer {

Result<std::span<const float>> SessionEngine::forward(std::span<const int32_t> tokens, const StopCheck* should_stop) {
  const uint32_t first = cursor();
  GenerateCallbacks callbacks = callbacks_;
  if (should_stop) callbacks.should_stop = *should_stop;
  if (tokens.size() == 1) callbacks.on_prefill = nullptr;
  MINFER_ASSIGN(const Logits logits, prefill(session_, 0, tokens, n_batch_, 1, callbacks));
  if (callbacks_.on_token)
    for (size_t i = 0; i < tokens.size(); ++i) callbacks_.on_token(first + static_cast<uint32_t>(i), tokens[i]);
  return logits.row(0);
}

Result<RenderedChat> TemplateText::render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const {
  return render_chat(template_, tokenizer_.vocabulary(), messages, add_generation_prompt);
}

Result<std::vector<int32_t>> TemplateText::encode(const RenderedChat& chat, size_t first) const {
  std::vector<TextRange> literal;
  for (const TextRange& range : chat.literal)
    if (range.end > first) literal.push_back({std::max(range.begin, first) - first, range.end - first});
  EncodeOptions options;
  options.parse_special = true;
  options.literal = literal;
  MINFER_ASSIGN(const auto ids, tokenizer_.encode(std::string_view(chat.text).substr(first), options));
  return std::vector<int32_t>(ids.begin(), ids.end());
}

std::string TemplateText::as_read(const std::string& message) const {
  const auto ids = tokenizer_.encode(message);
  if (!ids.ok()) return message;  // too long: it is refused when it is rendered
  const auto bytes = tokenizer_.decode(*ids);
  return bytes.ok() ? *bytes : message;
}

std::optional<int32_t> TemplateText::missing_bos(std::span<const int32_t> ids) const {
  std::vector<TokenId> with_bos(ids.begin(), ids.end());
  tokenizer_.add_bos(with_bos);
  if (with_bos.size() == ids.size()) return std::nullopt;
  return static_cast<int32_t>(with_bos.front());
}

}  // namespace minfer
