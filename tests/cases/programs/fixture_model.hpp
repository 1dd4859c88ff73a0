// Tiny models whose greedy text is known without running them. One layer; see each maker for the rule its logits follow.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/gguf_writer.hpp"

namespace minfer::test {

// Vocabulary: 0 to 255 the bytes, then these; the one merge is "a b".
inline constexpr uint32_t kBos = 256;  // <|endoftext|>; 257 <|im_start|>
inline constexpr uint32_t kEos = 258;  // <|im_end|>
inline constexpr uint32_t kDef = 262;  // "DEF"; 259 "ab", 260 F0 9F, 261 98 8A
inline constexpr uint32_t kHi = 263;   // "HI"
inline constexpr uint32_t kLlo = 271;  // "llo"; 264 "?\n", 265 '{"', 266 E0 A6 95, 267 <unused0>, 268 <tool_call>, 269 " th", 270 "\n\n"
inline constexpr uint32_t kVocab = 272;

enum class Storage { kF32, kF16, kBf16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K };
std::string_view storage_name(Storage storage);

// Edit what a maker returned, then write.
class FixtureModel {
 public:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // dims[0] = row length
    std::vector<float> values;
    Storage storage = Storage::kF32;
  };

  Tensor& tensor(std::string_view name);
  void drop_tensor(std::string_view name);
  // Writes a metadata key, or another value for one that is there.
  template <class T>
  void set(const std::string& key, T value) {
    set_key(key, [key, value](GgufWriter& w) { w.set(key, value); });
  }
  std::vector<std::string> tokens;
  std::vector<int32_t> token_types;
  uint64_t alignment = 32;

  void write(const std::filesystem::path& path) const;

 private:
  friend FixtureModel base_model(const std::string&, uint64_t, uint64_t, uint64_t, float, uint32_t);
  void set_key(const std::string& key, std::function<void(GgufWriter&)> write);

  std::vector<std::pair<std::string, std::function<void(GgufWriter&)>>> keys_;
  std::vector<Tensor> tensors_;
};

// The next token depends on the current one alone: logit(next | current) = rows[current][next], from every token where current is -1,
// and `rest` elsewhere; exact where the width is a power of two. One-hot embeddings, all block weights 0; the norm of a one-hot row of
// width E is 1 / sqrt(1/E + eps), which eps = 2^-8 - 1/E makes 16, and output_norm = 1/16.
using Rows = std::map<int, std::map<uint32_t, float>>;
FixtureModel markov_model(const std::string& arch, const Rows& rows, uint64_t n_embd = 512, float rest = -16);
// After each token the next of the list, EOS behind the last.
FixtureModel chain_model(const std::string& arch, const std::vector<uint32_t>& chain, uint64_t n_embd = 512);
// The chain C DEF G HI J ! : prompt ABC, text DEFGHIJ!
FixtureModel abc_model(const std::string& arch = "llama", uint64_t n_embd = 512);
inline constexpr std::string_view kAbcText = "DEFGHIJ!";

// Attention weighs all visible cells alike, so the most frequent byte in the KV cache comes next: a stale or foreign cell shows as a wrong
// byte. qk_bias (qwen2) puts that number into dimensions 31 and 63 of each head of q and k, the pair that rotates slowest: scores become
// 2 * qk_bias^2 / 8, alike over short distances.
FixtureModel history_model(const std::string& arch, float qk_bias = 0);

// Attention peaks seven cells back, at any position: the last eight tokens are repeated for ever. Any fault of rotation, positions or
// batches breaks the period.
FixtureModel copy8_model(const std::string& arch);

}  // namespace minfer::test
