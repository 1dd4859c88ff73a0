#include "cases/programs/fixture_model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

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
    if (code >= 0x80) out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(code >= 0x80 ? 0x80 | (code & 0x3F) : code);
  }
  return out;
}

// Halves of normal size, ties to even; smaller ones become 0: scales of these models are never that small.
uint16_t half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000;
  const int exponent = static_cast<int>(bits >> 23 & 0xFF) - 127 + 15;
  if (exponent <= 0) return static_cast<uint16_t>(sign);
  const uint32_t mantissa = bits & 0x7FFFFF;
  uint32_t out = static_cast<uint32_t>(exponent) << 10 | mantissa >> 13;
  const uint32_t rest = mantissa & 0x1FFF;
  if (rest > 0x1000 || (rest == 0x1000 && (out & 1))) ++out;
  return static_cast<uint16_t>(sign | out);
}

float from_half(uint16_t half) {
  const uint32_t exponent = half >> 10 & 31;
  if (exponent == 0) return 0;
  return std::ldexp((half & 0x8000 ? -1.0f : 1.0f) * (1 + static_cast<float>(half & 0x3FF) / 1024), static_cast<int>(exponent) - 15);
}

uint16_t bfloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint32_t type_id(Storage storage) {
  constexpr uint32_t kIds[] = {0, 1, 30, 8, 2, 3, 6, 7, 10, 11, 12, 13, 14};
  return kIds[static_cast<size_t>(storage)];
}

// One block of 32 values. Symmetric types: value = d * (q - zero); the others: value = d * q + low.
void append_block(const float* x, Storage storage, std::string& out) {
  const bool offset = storage == Storage::kQ4_1 || storage == Storage::kQ5_1;
  const int bits = storage == Storage::kQ8_0 ? 8 : storage == Storage::kQ4_0 || storage == Storage::kQ4_1 ? 4 : 5;
  const float low = *std::min_element(x, x + 32), high = *std::max_element(x, x + 32);
  const float extreme = -low > high ? low : high;
  const int top = (1 << bits) - 1, zero = 1 << (bits - 1);
  const uint16_t d = half(offset      ? (high - low) / static_cast<float>(top)
                          : bits == 8 ? extreme / 127
                                      : extreme / -static_cast<float>(zero));
  const float step = from_half(d), base = offset ? from_half(half(low)) : 0;
  out += GgufWriter::raw(d);
  if (offset) out += GgufWriter::raw(half(low));
  int q[32];
  for (int i = 0; i < 32; ++i) {
    const int steps = step == 0 ? 0 : static_cast<int>(std::lround((x[i] - base) / step));
    q[i] = bits == 8 ? std::clamp(steps, -127, 127) : std::clamp(steps + (offset ? 0 : zero), 0, top);
  }
  if (bits == 8) {
    for (const int value : q) out += static_cast<char>(value);
    return;
  }
  if (bits == 5) {
    uint32_t fifth = 0;
    for (int i = 0; i < 32; ++i) fifth |= static_cast<uint32_t>(q[i] >> 4) << i;
    out += GgufWriter::raw(fifth);
  }
  for (int i = 0; i < 16; ++i) out += static_cast<char>((q[i] & 15) | (q[i + 16] & 15) << 4);
}

// One super-block of 256 values with every sub-block's scale and minimum at its largest, so that it has one grid:
// value = step * q + low, or step * (q - zero).
void append_super_block(const float* x, Storage storage, std::string& out) {
  const bool offset = storage != Storage::kQ3_K && storage != Storage::kQ6_K;
  const int bits = storage == Storage::kQ6_K   ? 6
                   : storage == Storage::kQ5_K ? 5
                   : storage == Storage::kQ4_K ? 4
                   : storage == Storage::kQ3_K ? 3
                                               : 2;
  const int top = (1 << bits) - 1, zero = offset ? 0 : 1 << (bits - 1);
  const float scale = storage == Storage::kQ2_K ? 15 : storage == Storage::kQ3_K ? 31 : storage == Storage::kQ6_K ? 1 : 63;
  const float low = std::min(0.0f, *std::min_element(x, x + 256)), high = std::max(0.0f, *std::max_element(x, x + 256));
  const uint16_t d = half(
      (offset ? (high - low) / static_cast<float>(top) : std::max(-low / static_cast<float>(zero), high / static_cast<float>(zero - 1))) /
      scale);
  const uint16_t d_min = half(-low / scale);
  const float step = scale * from_half(d), base = offset ? -scale * from_half(d_min) : 0;
  uint8_t q[256];
  for (int i = 0; i < 256; ++i) {
    const int steps = step == 0 ? 0 : static_cast<int>(std::lround((x[i] - base) / step));
    q[i] = static_cast<uint8_t>(std::clamp(steps + zero, 0, top));
  }
  // Bits first..first+n-1 of the values at i, i + stride, ..., lowest first, as one byte.
  const auto packed = [&](int i, int stride, int first, int n) {
    int byte = 0;
    for (int at = 0; at < 8; at += n, i += stride) byte |= (q[i] >> first & ((1 << n) - 1)) << at;
    return static_cast<char>(byte);
  };
  const auto append_packed = [&](int half_size, int n_halves, int stride, int first, int n) {
    for (int h = 0; h < n_halves; ++h)
      for (int l = 0; l < stride; ++l) out += packed(h * half_size + l, stride, first, n);
  };
  const std::string scales = GgufWriter::raw(d) + (offset ? GgufWriter::raw(d_min) : "");
  switch (storage) {
    case Storage::kQ2_K:
      out.append(16, '\xFF');
      append_packed(128, 2, 32, 0, 2);
      out += scales;
      break;
    case Storage::kQ3_K:
      append_packed(256, 1, 32, 2, 1);
      append_packed(128, 2, 32, 0, 2);
      out.append(12, '\xFF');
      out += scales;
      break;
    case Storage::kQ6_K:
      for (int h = 0; h < 2; ++h)  // low nibbles: 64 apart
        for (int l = 0; l < 64; ++l) out += static_cast<char>((q[128 * h + l] & 15) | (q[128 * h + l + 64] & 15) << 4);
      append_packed(128, 2, 32, 4, 2);
      out.append(16, '\1');
      out += scales;
      break;
    default:  // Q4_K, Q5_K
      out += scales;
      out.append(12, '\xFF');
      if (bits == 5) append_packed(256, 1, 32, 4, 1);
      append_packed(64, 4, 32, 0, 4);
  }
}

std::string encode(const std::vector<float>& values, Storage storage) {
  std::string out;
  switch (storage) {
    case Storage::kF32: return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
    case Storage::kF16:
      for (const float value : values) out += GgufWriter::raw(half(value));
      return out;
    case Storage::kBf16:
      for (const float value : values) out += GgufWriter::raw(bfloat(value));
      return out;
    case Storage::kQ2_K:
    case Storage::kQ3_K:
    case Storage::kQ4_K:
    case Storage::kQ5_K:
    case Storage::kQ6_K:
      for (size_t i = 0; i + 256 <= values.size(); i += 256) append_super_block(&values[i], storage, out);
      return out;
    default:
      for (size_t i = 0; i + 32 <= values.size(); i += 32) append_block(&values[i], storage, out);
      return out;
  }
}

void fill_diagonal(FixtureModel::Tensor& tensor, uint64_t first_row, uint64_t first_col, uint64_t count, float value) {
  for (uint64_t i = 0; i < count; ++i) tensor.values[(first_row + i) * tensor.dims[0] + first_col + i] = value;
}

}  // namespace

std::string_view storage_name(Storage storage) {
  constexpr std::string_view kNames[] = {"F32",  "F16",  "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0",
                                         "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"};
  return kNames[static_cast<size_t>(storage)];
}

FixtureModel::Tensor& FixtureModel::tensor(std::string_view name) {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.name == name; });
  if (found == tensors_.end()) FAIL("the fixture has no tensor " << name);
  return *found;
}

void FixtureModel::drop_tensor(std::string_view name) { tensors_.erase(tensors_.begin() + (&tensor(name) - tensors_.data())); }

void FixtureModel::set_key(const std::string& key, std::function<void(GgufWriter&)> write) {
  const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const auto& entry) { return entry.first == key; });
  if (found != keys_.end())
    found->second = std::move(write);
  else
    keys_.emplace_back(key, std::move(write));
}

void FixtureModel::write(const std::filesystem::path& path) const {
  GgufWriter w;
  w.alignment = alignment;
  std::vector<std::string> texts;
  for (size_t i = 0; i < tokens.size(); ++i) texts.push_back(token_types[i] == 1 ? in_byte_alphabet(tokens[i]) : tokens[i]);
  w.set("tokenizer.ggml.tokens", texts);
  bool own_types = false;
  for (const auto& [key, write_key] : keys_) {
    own_types = own_types || key == "tokenizer.ggml.token_type";
    write_key(w);
  }
  if (!own_types) w.set("tokenizer.ggml.token_type", token_types);
  for (const Tensor& t : tensors_) w.tensor(t.name, type_id(t.storage), t.dims, encode(t.values, t.storage));
  w.write(path);
}

FixtureModel base_model(const std::string& arch, uint64_t n_embd, uint64_t n_head, uint64_t n_ff, float eps, uint32_t context) {
  FixtureModel model;
  const auto key = [&](const char* name) { return arch + "." + name; };
  model.set("general.architecture", arch);
  model.set(key("block_count"), uint32_t{1});
  model.set(key("context_length"), context);
  model.set(key("embedding_length"), static_cast<uint32_t>(n_embd));
  model.set(key("feed_forward_length"), static_cast<uint32_t>(n_ff));
  model.set(key("attention.head_count"), static_cast<uint32_t>(n_head));
  model.set(key("attention.head_count_kv"), static_cast<uint32_t>(n_head));
  model.set(key("attention.layer_norm_rms_epsilon"), eps);
  model.set(key("rope.freq_base"), arch == "qwen2" ? 1000000.0f : 10000.0f);
  model.set("tokenizer.ggml.model", std::string("gpt2"));
  model.set("tokenizer.ggml.pre", std::string("qwen2"));
  model.set("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  model.set("tokenizer.ggml.bos_token_id", kBos);
  model.set("tokenizer.ggml.eos_token_id", kEos);

  for (int b = 0; b < 256; ++b) model.tokens.emplace_back(1, static_cast<char>(b));
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "ab", "\xF0\x9F", "\x98\x8A", "DEF", "HI", "?\n", "{\"",
                           "\xE0\xA6\x95", "<unused0>", "<tool_call>", " th", "\n\n", "llo"})
    model.tokens.emplace_back(text);
  model.token_types.assign(kVocab, 1);
  for (const uint32_t control : {256, 257, 258}) model.token_types[control] = 3;
  model.token_types[267] = 5;
  model.token_types[268] = 4;

  const auto add = [&](const std::string& name, std::vector<uint64_t> dims, float value = 0) {
    const uint64_t size = dims[0] * (dims.size() > 1 ? dims[1] : 1);
    model.tensors_.push_back({name, std::move(dims), std::vector<float>(size, value), Storage::kF32});
  };
  add("token_embd.weight", {n_embd, kVocab});
  fill_diagonal(model.tensors_.back(), 0, 0, kVocab, 1);
  add("blk.0.attn_norm.weight", {n_embd}, 1);
  for (const char* name : {"q", "k", "v", "output"}) add(std::string("blk.0.attn_") + name + ".weight", {n_embd, n_embd});
  if (arch == "qwen2")
    for (const char* name : {"q", "k", "v"}) add(std::string("blk.0.attn_") + name + ".bias", {n_embd});
  add("blk.0.ffn_norm.weight", {n_embd}, 1);
  add("blk.0.ffn_gate.weight", {n_embd, n_ff});
  add("blk.0.ffn_up.weight", {n_embd, n_ff});
  add("blk.0.ffn_down.weight", {n_ff, n_embd});
  add("output_norm.weight", {n_embd}, 1);
  add("output.weight", {n_embd, kVocab});
  return model;
}

FixtureModel markov_model(const std::string& arch, const Rows& rows, uint64_t n_embd, float rest) {
  const uint64_t head_dim = n_embd % 64 == 0 ? 64 : 32;
  FixtureModel model = base_model(arch, n_embd, n_embd / head_dim, 32, 0x1p-8f - 1.0f / static_cast<float>(n_embd), 4096);
  std::fill(model.tensor("output_norm.weight").values.begin(), model.tensor("output_norm.weight").values.end(), 1.0f / 16);
  std::vector<float>& logits = model.tensor("output.weight").values;
  for (uint32_t to = 0; to < kVocab; ++to) {
    for (uint32_t from = 0; from < kVocab; ++from) {
      float value = rest;
      for (const int row : {-1, static_cast<int>(from)})  // a token's own row overrides what it lists
        if (const auto found = rows.find(row); found != rows.end())
          if (const auto entry = found->second.find(to); entry != found->second.end()) value = entry->second;
      logits[to * n_embd + from] = value;
    }
  }
  return model;
}

FixtureModel chain_model(const std::string& arch, const std::vector<uint32_t>& chain, uint64_t n_embd) {
  Rows rows;
  for (size_t i = 0; i < chain.size(); ++i) rows[static_cast<int>(chain[i])] = {{i + 1 < chain.size() ? chain[i + 1] : kEos, 8.0f}};
  return markov_model(arch, rows, n_embd);
}

FixtureModel abc_model(const std::string& arch, uint64_t n_embd) { return chain_model(arch, {'C', kDef, 'G', kHi, 'J', '!'}, n_embd); }

namespace {

// Width 1024, 16 heads of 64: the normed row of a token is exactly one-hot; V and O copy it to dimensions 512 and up.
FixtureModel attention_model(const std::string& arch, uint32_t context) {
  FixtureModel model = base_model(arch, 1024, 16, 32, 3.0f / 1024, context);
  std::vector<float>& norm = model.tensor("blk.0.attn_norm.weight").values;
  std::fill(norm.begin(), norm.end(), 1.0f / 16);
  fill_diagonal(model.tensor("blk.0.attn_v.weight"), 512, 0, kVocab, 1);
  fill_diagonal(model.tensor("blk.0.attn_output.weight"), 0, 0, 1024, 1);
  fill_diagonal(model.tensor("output.weight"), 0, 512, 256, 4);
  return model;
}

}  // namespace

FixtureModel history_model(const std::string& arch, float qk_bias) {
  FixtureModel model = attention_model(arch, 4096);
  if (qk_bias != 0)
    for (const char* name : {"blk.0.attn_q.bias", "blk.0.attn_k.bias"})
      for (uint64_t head = 0; head < 16; ++head)
        for (const uint64_t dim : {31, 63}) model.tensor(name).values[head * 64 + dim] = qk_bias;
  return model;
}

FixtureModel copy8_model(const std::string& arch) {
  FixtureModel model = attention_model(arch, 16384);
  const double base = arch == "qwen2" ? 1000000.0 : 10000.0;
  for (const char letter : {'q', 'k'}) {
    std::vector<float> vector(1024, 0.0f);
    for (size_t head = 0; head < 16; ++head) {
      for (size_t pair = 0; pair < 32; ++pair) {
        const double angle = letter == 'k' ? 7 * std::pow(base, -2.0 * static_cast<double>(pair) / 64) : 0;
        const size_t first = arch == "llama" ? 2 * pair : pair, second = arch == "llama" ? 2 * pair + 1 : pair + 32;
        vector[head * 64 + first] = static_cast<float>(16 * std::cos(angle));
        vector[head * 64 + second] = static_cast<float>(16 * std::sin(angle));
      }
    }
    const std::string name = std::string("blk.0.attn_") + letter;
    if (arch == "qwen2") {
      model.tensor(name + ".bias").values = vector;
    } else {
      std::vector<float>& weight = model.tensor(name + ".weight").values;
      for (size_t row = 0; row < 1024; ++row)
        for (size_t token = 0; token < kVocab; ++token) weight[row * 1024 + token] = vector[row];
    }
  }
  return model;
}

}  // namespace minfer::test
