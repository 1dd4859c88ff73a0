// One-layer models whose logits are known exactly, written as GGUF files at test time (f32, one-hot embeddings; some 20 MB at most).
//
// Vocabulary of all: ids 0-255 are that byte, 256 <|endoftext|> BOS, 257 <|im_start|>, 258 <|im_end|> EOS, 259 "ab" (the one merge),
// 260-271 pieces of text (262 "DEF", 263 "HI"). Text without "ab" is one token per byte; no BOS is added, there is no chat template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace minfer::test {

// Attention weighs all visible cells alike: the likeliest token is the byte that stands in the KV most often.
void write_history_model(const std::filesystem::path& file, const std::string& architecture);

// Attention peaks period - 1 cells back, wherever that is: the last `period` tokens are repeated for ever. A key with a wrong rotation,
// a row in the wrong place or a stale one breaks the repetition.
void write_copy_model(const std::filesystem::path& file, const std::string& architecture, uint32_t period = 8);

// The next token depends on the current one alone: behind each of `chain` its successor is likeliest, behind the last the end of
// sequence. An empty chain: 'a' behind everything. head_dim = n_embd / n_head; n_embd must be 512 or more.
void write_chain_model(const std::filesystem::path& file, uint32_t n_embd, uint32_t n_head, const std::vector<int32_t>& chain);

}  // namespace minfer::test
