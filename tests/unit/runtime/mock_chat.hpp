// An engine and a template for conversations that are small enough to follow by hand. One byte is one token. A message renders as
// "[u:text]\n" ('s', 'u', 'a' for the role), the generation prompt as "[a:"; ']' is the end-of-generation token. The tokenizer has one
// token of two bytes, kDoubleL, which the engine never generates.
#pragma once

#include <algorithm>
#include <limits>

#include "runtime/conversation.hpp"

namespace minfer::test {

inline constexpr int32_t kDoubleL = 256;
inline std::string mock_bytes(std::span<const int32_t> tokens) {
  std::string bytes;
  for (const int32_t token : tokens) bytes += token == kDoubleL ? "ll" : std::string(1, static_cast<char>(token));
  return bytes;
}

class MockEngine final : public ChatEngine {
 public:
  explicit MockEngine(uint32_t n_ctx = 1000) : n_ctx_(n_ctx), logits_(256) {}

  uint32_t n_ctx() const override { return n_ctx_; }
  uint32_t cursor() const override { return static_cast<uint32_t>(kv.size()); }

  // The reply is a function of what the KV holds: `reply_length` letters that depend on all of it, then ']'.
  Result<std::span<const float>> forward(std::span<const int32_t> tokens, const StopCheck* should_stop) override {
    if (kv.size() + tokens.size() > n_ctx_) return invalid("beyond n_ctx");
    if (fail_forward) return make_error(ErrorCode::kDeviceLost, "the device is gone");
    forwards.push_back(mock_bytes(tokens));
    kv.insert(kv.end(), tokens.begin(), tokens.end());
    if (should_stop && (*should_stop)()) return make_error(ErrorCode::kCancelled, "stopped");
    std::fill(logits_.begin(), logits_.end(), -1.0f);
    const std::string held = text();
    const size_t begin = held.rfind("[a:") + 3;
    const size_t length = held.size() - begin;
    if (!reply.empty())
      logits_[static_cast<unsigned char>(length < reply.size() ? reply[length] : ']')] = 9;
    else
      logits_[length < reply_length ? 'a' + std::hash<std::string>()(held) % 26 : ']'] = 9;
    return std::span<const float>(logits_);
  }
  Status rollback(uint32_t n) override {
    ++rollbacks;
    kv.resize(n);
    return {};
  }
  Status remove(uint32_t first, uint32_t count) override {
    if (!can_remove) return unsupported("rows stay where they are");
    removals.push_back({first, count});
    kv.erase(kv.begin() + first, kv.begin() + first + count);
    return {};
  }
  std::string text() const { return mock_bytes(kv); }

  std::vector<int32_t> kv;
  std::vector<std::string> forwards;
  std::vector<std::pair<uint32_t, uint32_t>> removals;
  int rollbacks = 0;
  size_t reply_length = 4;
  std::string reply;  // a fixed one instead
  bool can_remove = true;
  bool fail_forward = false;

 private:
  uint32_t n_ctx_;
  std::vector<float> logits_;
};

class MockText final : public ChatText {
 public:
  Result<RenderedChat> render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const override {
    if (messages.empty()) return invalid("no messages");
    RenderedChat chat;
    for (const ChatMessage& message : messages) {
      std::string content = message.content;
      if (trims)
        while (!content.empty() && content.back() == ' ') content.pop_back();
      if (forgets_thoughts && &message != &messages.back() && content.find('}') != std::string::npos)
        content.erase(0, content.find('}') + 1);
      chat.text += std::string("[") + message.role[0] + ":" + content + "]\n";
    }
    if (add_generation_prompt) chat.text += "[a:";
    return chat;
  }
  Result<std::vector<int32_t>> encode(const RenderedChat& chat, size_t first) const override {
    std::vector<int32_t> ids;
    for (size_t i = first; i < chat.text.size(); ++i) {
      const bool pair = chat.text.compare(i, 2, "ll") == 0;
      ids.push_back(pair ? kDoubleL : chat.text[i]);
      i += pair;
    }
    return ids;
  }
  // Its normal form has '-' for '~'.
  std::string as_read(const std::string& message) const override {
    std::string read = message;
    std::replace(read.begin(), read.end(), '~', '-');
    return read;
  }
  std::optional<int32_t> missing_bos(std::span<const int32_t>) const override { return bos; }
  Result<std::string_view> token_bytes(int32_t token) const override {
    static const std::string all = [] {
      std::string bytes(256, 0);
      for (int i = 0; i < 256; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(i);
      return bytes;
    }();
    if (token == kDoubleL) return std::string_view("ll");
    if (token < 0 || token > 255) return invalid("no such token");
    return std::string_view(all).substr(static_cast<size_t>(token), 1);
  }
  bool is_end_of_generation(int32_t token) const override { return token == ']'; }

  std::optional<int32_t> bos;
  bool trims = false;             // spaces at the end of a message
  bool forgets_thoughts = false;  // "{...}" of replies that are not the last message
};

}  // namespace minfer::test
