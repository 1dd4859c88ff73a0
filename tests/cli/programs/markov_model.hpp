// A model whose next token depends on the last one alone, with logits that tests write down: all block weights are 0, embeddings
// are one-hot, and the output matrix holds the logits. Its rows come out exactly. And how tests run programs on it.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "support/support.hpp"

namespace minfer::test {

// Vocabulary: 0 to 255 the bytes, then these.
inline constexpr int kEndOfText = 256;    // <|endoftext|>, control, BOS
inline constexpr int kImStart = 257;      // <|im_start|>, control
inline constexpr int kImEnd = 258;        // <|im_end|>, control, EOS
inline constexpr int kDef = 259;          // "DEF"
inline constexpr int kEmojiHead = 260;    // F0 9F
inline constexpr int kEmojiTail = 261;    // 98 8A
inline constexpr int kHi = 262;           // "HI"
inline constexpr int kMarkovVocab = 264;  // 263: "ab", the one merge

struct MarkovModel {
  std::map<int, std::map<int, float>> logits;  // from a token to the next; from -1: from every token
  float rest = -16;                            // of all others
  std::string chat_template;                   // empty: none
  bool add_bos = false;
  uint32_t context = 4096;

  // logit 8 for the successor of each, EOS behind the last.
  static MarkovModel chain(const std::vector<int>& tokens);
  // The same logits whatever came before.
  static MarkovModel always(const std::map<int, float>& next);
  void write(const std::filesystem::path& path) const;
};

// Every message's content, and nothing else.
inline constexpr std::string_view kPlainTemplate = "{% for m in messages %}{{ m.content }}{% endfor %}";

// A model file in a folder of its own, and the programs run on it.
class MarkovRun {
 public:
  explicit MarkovRun(const MarkovModel& model) { model.write(path()); }
  std::filesystem::path path() const { return dir_.path() / "markov.gguf"; }
  std::filesystem::path folder() const { return dir_.path(); }
  ProcessResult run(std::vector<std::string> arguments, std::string_view input = {}, const std::vector<std::string>& env = {}) const;
  // The same with --json: the object; the run must succeed.
  nlohmann::json json(std::vector<std::string> arguments, std::string_view input = {}) const;
  // Greedy without penalties; the text.
  std::string greedy(std::vector<std::string> arguments) const;

 private:
  TempDir dir_;
};

std::string program(std::string_view name);
ProcessResult minfer_run(std::vector<std::string> arguments, std::string_view input = {}, const std::vector<std::string>& env = {});

}  // namespace minfer::test
