// From what the user typed to the tokens of the prompt: chat template, control tokens, BOS. Knows no command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace minfer {

struct ChatMessage {
  std::string role;
  std::string content;
};

// A rendered conversation, and where in it control tokens are ordinary text because a message holds them.
struct RenderedChat {
  std::string text;
  std::vector<TextRange> literal;  // as EncodeOptions wants them
};

// The control tokens of a vocabulary, as text.
std::vector<std::string> control_token_texts(const Vocabulary& vocabulary);

// Renders the messages, with a generation prompt behind them unless told otherwise. Only what the template writes itself may become a
// control token: every control token inside a message, and every part of one at a message's edges, is marked as literal.
Result<RenderedChat> render_chat(const ChatTemplate& chat_template, const Vocabulary& vocabulary, const std::vector<ChatMessage>& messages,
                                 bool add_generation_prompt = true);

// The same as token ids, with exactly one BOS where the model wants one.
Result<std::vector<int32_t>> chat_prompt(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                         const std::vector<ChatMessage>& messages);

// A prompt as it stands: control tokens in it count, as nothing else can write them. BOS as above.
Result<std::vector<int32_t>> raw_prompt(const Tokenizer& tokenizer, std::string_view text);

}  // namespace minfer
