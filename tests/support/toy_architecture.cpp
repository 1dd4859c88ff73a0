#include "support/toy_architecture.hpp"

#include <cmath>
#include <stdexcept>

#include "support/graph_writer.hpp"

namespace minfer::test {

uint32_t ToyArchitecture::add(std::string name, uint32_t layer, uint32_t roles, const Shape& shape, float centre, float spread) {
  WeightInfo info;
  info.name = std::move(name);
  info.shape = shape;
  info.roles = roles;
  info.layer = layer;
  infos_.push_back(info);
  std::vector<float> values(shape.elements());
  for (float& value : values) {  // xorshift64*
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    const auto bits = static_cast<uint32_t>((random_ * 0x2545f4914f6cdd1dull) >> 40);
    value = centre + spread * (static_cast<float>(bits) / 8388608.0f - 1.0f);
  }
  values_.push_back(std::move(values));
  return static_cast<uint32_t>(infos_.size() - 1);
}

ToyArchitecture::ToyArchitecture(const ToyOptions& o) : options_(o), random_(o.seed * 0x9e3779b97f4a7c15ull + 1) {
  info_ = {o.n_layers, o.n_embd, o.n_vocab, o.n_ctx_train, o.n_head_kv, o.head_dim};
  const uint64_t n_q = uint64_t{o.n_head} * o.head_dim;
  const uint64_t n_kv = uint64_t{o.n_head_kv} * o.head_dim;
  const auto matrix = [&](const std::string& name, uint32_t layer, uint64_t n_in, uint64_t n_out) {
    add(name, layer, kRoleMatrix, {n_in, n_out}, 0, 1.7f / std::sqrt(static_cast<float>(n_in)));
  };
  const auto vector = [&](const std::string& name, uint32_t layer, uint64_t n, float centre) {
    add(name, layer, kRoleVector, {n}, centre, 0.3f);
  };
  add("token_embd", kEmbeddingLayer, kRoleEmbedding | (o.tied ? kRoleOutput : 0u), {o.n_embd, o.n_vocab}, 0, 0.5f);
  for (uint32_t l = 0; l < o.n_layers; ++l) {
    const std::string p = "blk." + std::to_string(l) + ".";
    vector(p + "attn_norm", l, o.n_embd, 1);
    matrix(p + "wq", l, o.n_embd, n_q);
    matrix(p + "wk", l, o.n_embd, n_kv);
    matrix(p + "wv", l, o.n_embd, n_kv);
    if (o.biases) {
      vector(p + "bq", l, n_q, 0);
      vector(p + "bk", l, n_kv, 0);
      vector(p + "bv", l, n_kv, 0);
    }
    if (o.qk_norm) {
      vector(p + "q_norm", l, o.head_dim, 1);
      vector(p + "k_norm", l, o.head_dim, 1);
    }
    matrix(p + "wo", l, n_q, o.n_embd);
    vector(p + "ffn_norm", l, o.n_embd, 1);
    matrix(p + "gate", l, o.n_embd, o.n_ff);
    matrix(p + "up", l, o.n_embd, o.n_ff);
    matrix(p + "down", l, o.n_ff, o.n_embd);
  }
  vector("output_norm", kOutputLayer, o.n_embd, 1);
  if (!o.tied) add("output", kOutputLayer, kRoleMatrix | kRoleOutput, {o.n_embd, o.n_vocab}, 0, 0.3f);
}

uint32_t ToyArchitecture::find(std::string_view name) const {
  for (uint32_t id = 0; id < infos_.size(); ++id)
    if (infos_[id].name == name) return id;
  return kNone;
}

const std::vector<float>& ToyArchitecture::weight(std::string_view name) const {
  const uint32_t id = find(name);
  if (id == kNone) throw std::logic_error("the toy model has no weight " + std::string(name));
  return values_[id];
}

std::vector<std::span<const std::byte>> ToyArchitecture::weight_data() const {
  std::vector<std::span<const std::byte>> data;
  for (const auto& values : values_) data.push_back(std::as_bytes(std::span(values)));
  return data;
}

Status ToyArchitecture::build(const GraphParams& params, GraphBuilder& builder) try {
  const ToyOptions& o = options_;
  ++builds;
  const float eps = unstable ? o.eps * static_cast<float>(builds) : o.eps;
  GraphWriter g(builder);
  const uint32_t n = params.n_tokens;
  const bool cut = params.n_out > 0 && params.n_out < n;
  const ValueId tokens = g.input(InputKind::kTokenIds);
  const ValueId positions = g.input(InputKind::kPositions);
  const ValueId row_seq = g.input(InputKind::kRowSeq);
  const ValueId table = g.input(InputKind::kBlockTable);
  const ValueId out_rows = cut ? g.input(InputKind::kOutRows) : kNone;
  const ValueId out_positions = cut ? g.input(InputKind::kOutPositions) : positions;
  const ValueId out_row_seq = cut ? g.input(InputKind::kOutRowSeq) : row_seq;

  g.layer = kEmbeddingLayer;
  ValueId x = g.get_rows(g.weight(find("token_embd")), tokens);  // [n_embd, n]
  for (uint32_t l = 0; l < o.n_layers; ++l) {
    g.layer = l;
    const bool last = l + 1 == o.n_layers;
    const auto w = [&](const char* name) { return g.weight(find("blk." + std::to_string(l) + "." + name)); };
    const auto heads = [&](ValueId h, const char* matrix, const char* bias, const char* norm, uint32_t n_heads, uint32_t rows) {
      ValueId y = g.matmul(h, w(matrix), w(bias));  // [n_heads*head_dim, rows]
      if (!o.qk_norm) return y;
      y = g.rms_norm(g.view(y, {o.head_dim, n_heads, rows}), w(norm), eps);
      return g.view(y, {uint64_t{n_heads} * o.head_dim, rows});
    };
    const ValueId h = g.rms_norm(x, w("attn_norm"), eps);
    const auto store = [&] {
      const ValueId k = heads(h, "wk", "bk", "k_norm", o.n_head_kv, n);
      const ValueId v = g.matmul(h, w("wv"), w("bv"));
      g.kv_store(g.rope(k, positions, o.n_head_kv, o.head_dim), v, positions, row_seq, table, o.n_head_kv, o.head_dim);
    };
    if (last && params.n_out == 0) {
      store();
      return {};
    }
    const bool cut_here = last && cut;
    const ValueId h_q = cut_here ? g.get_rows(h, out_rows) : h;
    if (cut_here) x = g.get_rows(x, out_rows);
    const ValueId row_positions = cut_here ? out_positions : positions;
    const ValueId q = g.rope(heads(h_q, "wq", "bq", "q_norm", o.n_head, cut_here ? params.n_out : n), row_positions, o.n_head, o.head_dim);
    store();
    const ValueId attended = g.attention(q, row_positions, cut_here ? out_row_seq : row_seq, table, o.n_head, o.n_head_kv, o.head_dim,
                                         1.0f / std::sqrt(static_cast<float>(o.head_dim)), o.window);
    x = g.add(x, g.matmul(attended, w("wo")));
    const ValueId f = g.rms_norm(x, w("ffn_norm"), eps);
    const ValueId gate = g.silu(g.matmul(f, w("gate")));
    const ValueId up = g.matmul(f, w("up"));
    x = g.add(x, g.matmul(g.mul(gate, up), w("down")));
  }
  g.layer = kOutputLayer;
  x = g.rms_norm(x, g.weight(find("output_norm")), eps);
  g.output(g.matmul(x, g.weight(find(o.tied ? "token_embd" : "output"))));  // [n_vocab, n_out]
  return {};
} catch (const std::logic_error& error) {
  return internal_error("{}", error.what());
}

ToyModel::ToyModel(const ToyOptions& options, const std::vector<ReferenceOptions>& device_options, const LayerCounts& layer_counts)
    : architecture(options) {
  std::vector<Device*> raw;
  for (const ReferenceOptions& one : device_options) {
    devices.push_back(std::make_unique<ReferenceDevice>(one));
    raw.push_back(devices.back().get());
  }
  auto placement = place_model(architecture, raw, layer_counts, {}, toy_cparams());
  if (!placement.ok()) throw std::runtime_error(placement.error().text);
  const auto data = architecture.weight_data();
  auto loaded = LoadedModel::load(architecture, raw, std::move(*placement), data, [](uint32_t) {});
  if (!loaded.ok()) throw std::runtime_error(loaded.error().text);
  model = std::move(*loaded);
}

CParams toy_cparams(uint32_t n_ctx, uint32_t max_seqs) {
  CParams cparams;
  cparams.n_ctx = n_ctx;
  cparams.max_seqs = max_seqs;
  cparams.kv_format = KvFormat::kF32;
  return cparams;
}

std::vector<int32_t> toy_tokens(size_t n, uint32_t salt) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < n; ++i) tokens.push_back(static_cast<int32_t>((i * 31 + i * i * 7 + salt * 17 + 3) % 50));
  return tokens;
}

}  // namespace minfer::test
