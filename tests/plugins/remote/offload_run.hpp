// Models partly on the remote device, driven with few words.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "support/loaded_model.hpp"
#include "support/support.hpp"

namespace minfer::test {

// Tiny models of the architectures that are built: tied and not, several weight types, both pairings of RoPE, norms per head.
inline std::vector<std::string> tiny_files() {
  std::vector<std::string> files;
#ifdef MINFER_TEST_QWEN2
  for (const char* name : {"qwen2_F32.gguf", "qwen2_untied_Q4_K.gguf", "qwen2_untied_MIXED.gguf"}) files.emplace_back(name);
#endif
#ifdef MINFER_TEST_LLAMA
  for (const char* name : {"llama_F32_ropefreqs.gguf", "llama_Q8_0.gguf", "llama_untied_Q6_K.gguf"}) files.emplace_back(name);
#endif
#ifdef MINFER_TEST_QWEN3
  for (const char* name : {"qwen3_F32.gguf", "qwen3_Q4_K.gguf"}) files.emplace_back(name);
#endif
  return files;
}
// Tied, of two layers, f32.
inline std::filesystem::path tiny_file() { return data_dir() / "tiny" / tiny_files()[0]; }
// Quantised, with heads that every KV format takes.
inline std::filesystem::path quantised_file() { return data_dir() / "tiny" / tiny_files()[1]; }
inline std::filesystem::path untied_file() { return data_dir() / "tiny" / tiny_files()[2]; }

inline BackendSpec cpu() { return backend("cpu", -1, {{"threads", "2"}}); }

// n deterministic token ids of the model.
inline std::vector<int32_t> tokens(const ModelOnBackends& model, size_t n, uint32_t salt = 0) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>((i * 31 + i * i * 7 + salt * 17 + 3) % model->info().n_vocab));
  return ids;
}

// Logits of a prompt of 70 tokens in chunks of 30, 30 and 10, the last 5 rows asked for, and of three tokens behind it, one by one.
inline std::vector<float> prompt_and_decode(Session& session, const std::vector<int32_t>& ids) {
  std::vector<float> rows = run_tokens(session, {ids.begin(), ids.begin() + 70}, 5, 30);
  for (size_t i = 70; i < 73; ++i) {
    const std::vector<float> row = run_tokens(session, {ids[i]}, 1);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Splits of the last graph on each device of the model.
inline std::vector<size_t> splits_by_device(const Session& session) {
  std::vector<size_t> counts(session.model().devices().size(), 0);
  for (const Split& split : session.last_graph()->splits) ++counts[split.device];
  return counts;
}

}  // namespace minfer::test
