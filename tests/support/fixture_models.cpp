#include "support/fixture_models.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <span>

#include "support/gguf_writer.hpp"

namespace minfer::test {
namespace {

constexpr uint32_t kVocabulary = 272, kEos = 258;

struct Fixture {
  std::string architecture;
  uint32_t n_embd, n_head, n_ff, n_ctx;
  float eps;
  std::vector<std::string> names;                       // in file order
  std::map<std::string, std::vector<uint64_t>> shapes;  // row length first
  std::map<std::string, std::vector<float>> values;

  std::vector<float>& operator[](const std::string& name) { return values.at(name); }
};

std::string utf8(uint32_t code) {  // below U+0800
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// How byte-level vocabularies spell a byte: itself where it prints, else the next unused code from U+0100 on.
std::string spell(std::string_view bytes) {
  static const std::array<std::string, 256> spelling = [] {
    std::array<std::string, 256> out;
    uint32_t spare = 256;
    for (uint32_t b = 0; b < 256; ++b) out[b] = utf8((b >= 33 && b < 127) || (b >= 161 && b < 173) || b >= 174 ? b : spare++);
    return out;
  }();
  std::string out;
  for (const unsigned char b : bytes) out += spelling[b];
  return out;
}

// Every block matrix and bias 0, every norm 1, the embedding one-hot.
Fixture base(const std::string& architecture, uint32_t n_embd, uint32_t n_head, float eps, uint32_t n_ctx) {
  Fixture f{architecture, n_embd, n_head, 32, n_ctx, eps, {}, {}, {}};
  const auto add = [&](const std::string& name, std::vector<uint64_t> shape, float value) {
    uint64_t n = 1;
    for (const uint64_t dim : shape) n *= dim;
    f.names.push_back(name);
    f.shapes[name] = std::move(shape);
    f.values[name].assign(n, value);
  };
  add("token_embd.weight", {n_embd, kVocabulary}, 0);
  for (uint32_t id = 0; id < kVocabulary; ++id) f["token_embd.weight"][id * n_embd + id] = 1;
  add("blk.0.attn_norm.weight", {n_embd}, 1);
  for (const char* name : {"q", "k", "v", "output"}) {
    add(std::string("blk.0.attn_") + name + ".weight", {n_embd, n_embd}, 0);
    if (architecture == "qwen2" && name[0] != 'o') add(std::string("blk.0.attn_") + name + ".bias", {n_embd}, 0);
  }
  add("blk.0.ffn_norm.weight", {n_embd}, 1);
  add("blk.0.ffn_gate.weight", {n_embd, f.n_ff}, 0);
  add("blk.0.ffn_up.weight", {n_embd, f.n_ff}, 0);
  add("blk.0.ffn_down.weight", {f.n_ff, n_embd}, 0);
  add("output_norm.weight", {n_embd}, 1);
  add("output.weight", {n_embd, kVocabulary}, 0);
  return f;
}

// Width 1024, 16 heads: the norm of a token's row gives one-hot times 1; value and output copy it to dimensions 512...
Fixture attention(const std::string& architecture, uint32_t n_ctx) {
  Fixture f = base(architecture, 1024, 16, 3.0f / 1024, n_ctx);
  f["blk.0.attn_norm.weight"].assign(1024, 1.0f / 16);
  for (uint32_t i = 0; i < kVocabulary; ++i) f["blk.0.attn_v.weight"][(512 + i) * 1024 + i] = 1;
  for (uint32_t i = 0; i < 1024; ++i) f["blk.0.attn_output.weight"][i * 1024 + i] = 1;
  for (uint32_t i = 0; i < 256; ++i) f["output.weight"][i * 1024 + 512 + i] = 4;
  return f;
}

float freq_base(const std::string& architecture) { return architecture == "llama" ? 10000.0f : 1000000.0f; }

void write(const Fixture& f, const std::filesystem::path& file) {
  std::vector<std::string> texts;
  std::vector<int32_t> kinds(kVocabulary, 1);
  for (uint32_t b = 0; b < 256; ++b) texts.push_back(spell(std::string(1, static_cast<char>(b))));
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) texts.push_back(text);
  for (const char* bytes : {"ab", "\xf0\x9f", "\x98\x8a", "DEF", "HI", "?\n", "{\"", "\xe0\xa6\x95"}) texts.push_back(spell(bytes));
  for (const char* text : {"<unused0>", "<tool_call>"}) texts.push_back(text);
  for (const char* bytes : {" th", "\n\n", "llo"}) texts.push_back(spell(bytes));
  kinds[256] = kinds[257] = kinds[258] = 3;  // control
  kinds[267] = 5;                            // unused
  kinds[268] = 4;                            // user defined

  const std::string key = f.architecture + ".";
  GgufWriter w;
  w.set("general.architecture", f.architecture).set(key + "block_count", uint32_t{1}).set(key + "context_length", f.n_ctx);
  w.set(key + "embedding_length", f.n_embd).set(key + "feed_forward_length", f.n_ff).set(key + "attention.head_count", f.n_head);
  w.set(key + "attention.head_count_kv", f.n_head).set(key + "attention.layer_norm_rms_epsilon", f.eps);
  w.set(key + "rope.freq_base", freq_base(f.architecture));
  if (f.architecture == "llama") w.set("llama.rope.dimension_count", f.n_embd / f.n_head);
  w.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "qwen2").set("tokenizer.ggml.tokens", texts);
  w.set("tokenizer.ggml.token_type", kinds).set("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  w.set("tokenizer.ggml.eos_token_id", kEos).set("tokenizer.ggml.bos_token_id", uint32_t{256}).set("tokenizer.ggml.add_bos_token", false);
  for (const std::string& name : f.names) w.tensor_f32(name, f.shapes.at(name), f.values.at(name));
  w.write(file);
}

}  // namespace

void write_history_model(const std::filesystem::path& file, const std::string& architecture) { write(attention(architecture, 4096), file); }

// Query: (16, 0) in every rotary pair. Key: the same turned by (period - 1) positions, so that their product is largest there.
void write_copy_model(const std::filesystem::path& file, const std::string& architecture, uint32_t period) {
  Fixture f = attention(architecture, 16384);
  std::vector<float> q(1024, 0), k(1024, 0);
  for (uint32_t head = 0; head < 16; ++head)
    for (uint32_t i = 0; i < 32; ++i) {
      const double angle = (period - 1) * std::pow(static_cast<double>(freq_base(architecture)), -2.0 * i / 64);
      const uint32_t first = head * 64 + (architecture == "llama" ? 2 * i : i), second = first + (architecture == "llama" ? 1 : 32);
      q[first] = 16;
      k[first] = static_cast<float>(16 * std::cos(angle));
      k[second] = static_cast<float>(16 * std::sin(angle));
    }
  if (architecture == "qwen2") {
    f["blk.0.attn_q.bias"] = q;
    f["blk.0.attn_k.bias"] = k;
  } else {  // the input is one-hot, so every column that a token selects holds the vector
    for (uint32_t row = 0; row < 1024; ++row)
      for (uint32_t id = 0; id < kVocabulary; ++id) {
        f["blk.0.attn_q.weight"][row * 1024 + id] = q[row];
        f["blk.0.attn_k.weight"][row * 1024 + id] = k[row];
      }
  }
  write(f, file);
}

// eps = 2^-8 - 1/n_embd makes the norm of a one-hot row 16, and the output norm undoes it: logits are the columns of output.weight.
void write_chain_model(const std::filesystem::path& file, uint32_t n_embd, uint32_t n_head, const std::vector<int32_t>& chain) {
  Fixture f = base("llama", n_embd, n_head, 0.00390625f - 1.0f / static_cast<float>(n_embd), 4096);
  f["output_norm.weight"].assign(n_embd, 1.0f / 16);
  std::vector<float>& logits = f["output.weight"];
  for (uint32_t next = 0; next < kVocabulary; ++next)
    for (uint32_t id = 0; id < kVocabulary; ++id) logits[next * n_embd + id] = chain.empty() && next == 'a' ? 8 : -16;
  for (size_t i = 0; i < chain.size(); ++i) {
    const uint32_t next = i + 1 < chain.size() ? static_cast<uint32_t>(chain[i + 1]) : kEos;
    logits[next * n_embd + static_cast<uint32_t>(chain[i])] = 8;
  }
  write(f, file);
}

}  // namespace minfer::test
