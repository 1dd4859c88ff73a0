#include "cli/programs/markov_model.hpp"

#include <catch2/catch.hpp>

#include "support/gguf_writer.hpp"

namespace minfer::test {
namespace {

// The byte alphabet of GPT-2: printable bytes stand for themselves, the others for U+0100 onwards, in order.
std::string in_byte_alphabet(std::string_view bytes) {
  static const std::vector<uint32_t> table = [] {
    std::vector<uint32_t> code(256);
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; ++b) code[b] = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : next++;
    return code;
  }();
  std::string out;
  for (const char c : bytes) {
    const uint32_t code = table[static_cast<uint8_t>(c)];
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else {
      out += static_cast<char>(0xC0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return out;
}

constexpr uint64_t kWidth = 512;  // with eps 2^-9 the norm of a one-hot row is exactly 16 times its value
constexpr uint64_t kFf = 32;

std::string zeros_q8_0(uint64_t elements) { return std::string(elements / 32 * 34, '\0'); }
std::string zeros_f32(uint64_t elements) { return std::string(elements * 4, '\0'); }

}  // namespace

MarkovModel MarkovModel::chain(const std::vector<int>& tokens) {
  MarkovModel model;
  for (size_t i = 0; i < tokens.size(); ++i) model.logits[tokens[i]] = {{i + 1 < tokens.size() ? tokens[i + 1] : kImEnd, 8.0f}};
  return model;
}

MarkovModel MarkovModel::always(const std::map<int, float>& next) {
  MarkovModel model;
  model.logits[-1] = next;
  return model;
}

void MarkovModel::write(const std::filesystem::path& path) const {
  std::vector<std::string> tokens;
  std::vector<int32_t> types(kMarkovVocab, 1);
  for (int b = 0; b < 256; ++b) tokens.push_back(in_byte_alphabet(std::string(1, static_cast<char>(b))));
  for (const char* control : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    types[tokens.size()] = 3;
    tokens.emplace_back(control);
  }
  for (const char* token : {"DEF", "\xF0\x9F", "\x98\x8A", "HI", "ab"}) tokens.push_back(in_byte_alphabet(token));

  std::vector<float> embedding(kMarkovVocab * kWidth, 0.0f), output(kMarkovVocab * kWidth, 0.0f);
  for (int from = 0; from < kMarkovVocab; ++from) {
    embedding[static_cast<size_t>(from) * kWidth + static_cast<size_t>(from)] = 1;
    auto row = logits.find(from);
    if (row == logits.end()) row = logits.find(-1);
    for (int to = 0; to < kMarkovVocab; ++to) {
      float value = rest;
      if (row != logits.end())
        if (const auto own = row->second.find(to); own != row->second.end()) value = own->second;
      output[static_cast<size_t>(to) * kWidth + static_cast<size_t>(from)] = value;
    }
  }

  GgufWriter w;
  w.set("general.architecture", "qwen2").set("general.name", "markov").set("qwen2.block_count", uint32_t{1});
  w.set("qwen2.context_length", context).set("qwen2.embedding_length", uint32_t{kWidth}).set("qwen2.feed_forward_length", uint32_t{kFf});
  w.set("qwen2.attention.head_count", uint32_t{8}).set("qwen2.attention.head_count_kv", uint32_t{1});
  w.set("qwen2.attention.layer_norm_rms_epsilon", 0x1p-9f).set("qwen2.rope.freq_base", 10000.0f);
  w.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "qwen2");
  w.set("tokenizer.ggml.tokens", tokens).set("tokenizer.ggml.token_type", types);
  w.set("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  w.set("tokenizer.ggml.bos_token_id", uint32_t{kEndOfText}).set("tokenizer.ggml.eos_token_id", uint32_t{kImEnd});
  w.set("tokenizer.ggml.add_bos_token", add_bos);
  if (!chat_template.empty()) w.set("tokenizer.chat_template", chat_template);
  w.tensor_f32("token_embd.weight", {kWidth, kMarkovVocab}, embedding);
  w.tensor_f32("output.weight", {kWidth, kMarkovVocab}, output);
  w.tensor_f32("output_norm.weight", {kWidth}, std::vector<float>(kWidth, 1.0f / 16));
  const std::vector<float> ones(kWidth, 1.0f);
  w.tensor_f32("blk.0.attn_norm.weight", {kWidth}, ones).tensor_f32("blk.0.ffn_norm.weight", {kWidth}, ones);
  const auto matrix = [&](const char* name, uint64_t in, uint64_t out) {
    w.tensor(name, GgufWriter::kQ8_0, {in, out}, zeros_q8_0(in * out));
  };
  matrix("blk.0.attn_q.weight", kWidth, kWidth);
  matrix("blk.0.attn_k.weight", kWidth, 64);
  matrix("blk.0.attn_v.weight", kWidth, 64);
  matrix("blk.0.attn_output.weight", kWidth, kWidth);
  matrix("blk.0.ffn_gate.weight", kWidth, kFf);
  matrix("blk.0.ffn_up.weight", kWidth, kFf);
  matrix("blk.0.ffn_down.weight", kFf, kWidth);
  w.tensor("blk.0.attn_q.bias", GgufWriter::kF32, {kWidth}, zeros_f32(kWidth));
  w.tensor("blk.0.attn_k.bias", GgufWriter::kF32, {64}, zeros_f32(64));
  w.tensor("blk.0.attn_v.bias", GgufWriter::kF32, {64}, zeros_f32(64));
  w.write(path);
}

std::string program(std::string_view name) { return (build_dir() / "bin" / name).string(); }

ProcessResult minfer_run(std::vector<std::string> arguments, std::string_view input, const std::vector<std::string>& env) {
  arguments.insert(arguments.begin(), program("minfer-run"));
  return run_process(arguments, input, env);
}

ProcessResult MarkovRun::run(std::vector<std::string> arguments, std::string_view input, const std::vector<std::string>& env) const {
  arguments.insert(arguments.begin(), {"-m", path().string(), "-t", "1"});
  return minfer_run(std::move(arguments), input, env);
}

nlohmann::json MarkovRun::json(std::vector<std::string> arguments, std::string_view input) const {
  arguments.insert(arguments.begin(), {"--json", "-q"});
  const ProcessResult result = run(std::move(arguments), input);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out);
}

std::string MarkovRun::greedy(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"-q", "--greedy", "--repeat-penalty", "1"});
  const ProcessResult result = run(std::move(arguments));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

}  // namespace minfer::test
