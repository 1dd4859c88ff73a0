// How messages are told from template text: a mark, which occurs nowhere else, is put into each message behind the first byte of
// every control token (or part of one) that the message holds. The template carries the marks to where the text ends up, whatever
// it does with it (trim, repeat, drop); they are taken out of the rendered text, and the byte before each becomes literal.
#include "runtime/prompt.hpp"

#include <algorithm>

namespace minfer {
namespace {

// Spaces as templates trim them. A mark is never put outside the others.
constexpr std::string_view kSpaces = " \t\n\v\f\r";

// Text that occurs neither in the messages nor in the control tokens.
std::string unused_mark(const std::vector<ChatMessage>& messages) {
  for (uint32_t n = 0;; ++n) {
    std::string mark = text("\xEE\x80\x80{}\xEE\x80\x81", n);  // between two private-use characters
    const auto has_mark = [&](const ChatMessage& m) { return m.content.find(mark) != std::string::npos; };
    if (std::none_of(messages.begin(), messages.end(), has_mark)) return mark;
  }
}

// Offsets behind which a mark is needed, ascending.
std::vector<size_t> mark_offsets(std::string_view content, const std::vector<std::string>& tokens) {
  const size_t first = content.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  const size_t end = content.find_last_not_of(kSpaces) + 1;
  std::vector<size_t> offsets;
  for (const std::string& token : tokens) {
    for (size_t at = content.find(token); at != std::string_view::npos; at = content.find(token, at + 1)) offsets.push_back(at + 1);
    // The template's text may complete a token across the border: here the message begins with the end of one ...
    for (size_t cut = 1; cut < token.size(); ++cut)
      if (content.substr(first).starts_with(std::string_view(token).substr(cut))) offsets.push_back(first + 1);
    // ... or ends with the beginning of one.
    for (size_t cut = 1; cut < token.size(); ++cut)
      if (content.substr(first, end - first).ends_with(std::string_view(token).substr(0, cut))) offsets.push_back(end);
  }
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

std::string with_marks(const std::string& content, const std::vector<size_t>& offsets, const std::string& mark) {
  std::string marked;
  size_t done = 0;
  for (const size_t offset : offsets) {
    marked.append(content, done, offset - done).append(mark);
    done = offset;
  }
  return marked.append(content, done);
}

RenderedChat without_marks(const std::string& rendered, const std::string& mark) {
  RenderedChat chat;
  size_t done = 0;
  for (size_t at = rendered.find(mark); at != std::string::npos; at = rendered.find(mark, done)) {
    chat.text.append(rendered, done, at - done);
    const size_t size = chat.text.size();
    if (size > 0 && (chat.literal.empty() || chat.literal.back().end < size)) chat.literal.push_back({size - 1, size});
    done = at + mark.size();
  }
  chat.text.append(rendered, done);
  return chat;
}

std::optional<std::string> token_text(const Vocabulary& vocabulary, std::optional<TokenId> id) {
  if (!id) return std::nullopt;
  return std::string(vocabulary.bytes(*id));
}

std::vector<int32_t> with_bos(const Tokenizer& tokenizer, std::vector<TokenId> ids) {
  tokenizer.add_bos(ids);
  return {ids.begin(), ids.end()};
}

}  // namespace

std::vector<std::string> control_token_texts(const Vocabulary& vocabulary) {
  std::vector<std::string> texts;
  for (const TokenId id : vocabulary.special_tokens())
    if (vocabulary.type(id) == TokenType::kControl && !vocabulary.bytes(id).empty()) texts.emplace_back(vocabulary.bytes(id));
  return texts;
}

Result<RenderedChat> render_chat(const ChatTemplate& chat_template, const Vocabulary& vocabulary, const std::vector<ChatMessage>& messages,
                                 bool add_generation_prompt) {
  const std::vector<std::string> tokens = control_token_texts(vocabulary);
  const std::string mark = unused_mark(messages);
  std::vector<jinja::Value> list;
  for (const ChatMessage& message : messages) {
    const auto dict = std::make_shared<jinja::Dict>();
    dict->set("role", message.role);
    dict->set("content", with_marks(message.content, mark_offsets(message.content, tokens), mark));
    list.emplace_back(dict);
  }
  ChatInputs inputs;
  inputs.messages = jinja::make_list(std::move(list));
  inputs.add_generation_prompt = add_generation_prompt;
  inputs.bos_token = token_text(vocabulary, vocabulary.bos());
  inputs.eos_token = token_text(vocabulary, vocabulary.eos());
  MINFER_ASSIGN(const std::string rendered, chat_template.render(inputs));
  return without_marks(rendered, mark);
}

Result<std::vector<int32_t>> chat_prompt(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                         const std::vector<ChatMessage>& messages) {
  MINFER_ASSIGN(const RenderedChat chat, render_chat(chat_template, tokenizer.vocabulary(), messages));
  EncodeOptions options;
  options.parse_special = true;
  options.literal = chat.literal;
  MINFER_ASSIGN(std::vector<TokenId> ids, tokenizer.encode(chat.text, options));
  return with_bos(tokenizer, std::move(ids));
}

Result<std::vector<int32_t>> raw_prompt(const Tokenizer& tokenizer, std::string_view text) {
  EncodeOptions options;
  options.parse_special = true;
  MINFER_ASSIGN(std::vector<TokenId> ids, tokenizer.encode(text, options));
  return with_bos(tokenizer, std::move(ids));
}

}  // namespace minfer
