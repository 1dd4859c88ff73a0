// Random damage to whole models: each file is refused with one line or loads and runs two tokens; no crash, no hang.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>

#include "cases/files/try_model.hpp"
#include "support/malformed.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

constexpr int kFiles = MINFER_TEST_SANITIZED ? 400 : 2000;
constexpr size_t kHeaderBytes = 6629;  // of base_ok.gguf: all but the tensor data

// Offsets just behind each of these texts: where the type and the value of a key, or the shape of a tensor, lie.
std::vector<size_t> field_offsets(const std::string& base) {
  std::vector<size_t> offsets;
  for (const char* text : {"general.architecture",
                           "llama.block_count",
                           "llama.context_length",
                           "llama.embedding_length",
                           "llama.feed_forward_length",
                           "llama.attention.head_count",
                           "llama.attention.head_count_kv",
                           "llama.attention.layer_norm_rms_epsilon",
                           "tokenizer.ggml.model",
                           "tokenizer.ggml.pre",
                           "tokenizer.ggml.tokens",
                           "tokenizer.ggml.token_type",
                           "tokenizer.ggml.merges",
                           "token_id",
                           "token_embd.weight",
                           "attn_norm.weight",
                           "attn_q.weight",
                           "attn_k.weight",
                           "ffn_down.weight",
                           "output_norm.weight"})
    if (const size_t at = base.find(text); at != std::string::npos) offsets.push_back(at + std::string_view(text).size());
  return offsets;
}

class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  std::string operator()(const std::string& base, const std::vector<size_t>& fields) {
    std::string bytes = base;
    const size_t changes = 1 + below(2);
    for (size_t i = 0; i < changes; ++i) {
      switch (below(6)) {
        case 0: bytes[below(kHeaderBytes)] = static_cast<char>(random_()); break;
        case 1: flip_bit(bytes, below(kHeaderBytes)); break;
        case 2: put_number(bytes, below(kHeaderBytes)); break;
        case 3: put_number(bytes, fields[below(fields.size())] + 4 * below(4)); break;  // the type, the value or what follows
        case 4: flip_bit(bytes, fields[below(fields.size())] + below(24)); break;
        case 5:  // tensor data, often enough to hit a scale
          for (int n = 0; n < 20; ++n) put_number(bytes, kHeaderBytes + below(bytes.size() - kHeaderBytes));
          break;
      }
    }
    if (below(16) == 0) bytes.resize(below(bytes.size()));
    return bytes;
  }

 private:
  size_t below(size_t limit) { return static_cast<size_t>(random_() % limit); }
  void flip_bit(std::string& bytes, size_t at) {
    if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
  }
  // Numbers that lengths, counts, ids and halves are most likely to go wrong at.
  void put_number(std::string& bytes, size_t at) {
    static constexpr uint64_t kNumbers[] = {0,
                                            1,
                                            2,
                                            3,
                                            7,
                                            31,
                                            33,
                                            0xFF,
                                            0x7C00,
                                            0x7E00,
                                            0xFFFF,
                                            0x7F800000,
                                            0x7FC00000,
                                            0x7FFFFFFF,
                                            0x80000000,
                                            0xFFFFFFFF,
                                            uint64_t{1} << 40,
                                            uint64_t{1} << 60,
                                            UINT64_MAX,
                                            UINT64_MAX - 7};
    const uint64_t value = kNumbers[below(std::size(kNumbers))];
    const size_t size = size_t{1} << (1 + below(3));
    if (at + size <= bytes.size()) bytes.replace(at, size, reinterpret_cast<const char*>(&value), size);
  }

  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("cases/files: many damaged models end in one line or in text") {
  const std::string& base = malformed_file("base_ok.gguf").bytes;
  const std::vector<size_t> fields = field_offsets(base);
  REQUIRE(fields.size() >= 18);
  ModelTrier trier;
  Damage damage(20240903);
  std::map<Ended, int> ended;
  for (int round = 0; round < kFiles; ++round) {
    const Outcome outcome = trier.try_bytes(damage(base, fields), 3, 2);
    ++ended[outcome.ended];
    const bool one_line =
        std::none_of(outcome.error.begin(), outcome.error.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (!one_line || outcome.error.size() > 1000 || outcome.error.empty() != (outcome.ended == Ended::kDone))
      FAIL_CHECK("round " << round << ": " << outcome.error);
  }
  // All three ways were taken often enough to mean something.
  CHECK(ended[Ended::kLoading] > kFiles / 4);
  CHECK(ended[Ended::kRunning] > kFiles / 100);
  CHECK(ended[Ended::kDone] > kFiles / 20);
}
