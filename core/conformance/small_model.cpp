#include "conformance/small_model.hpp"

#include "engine/graph/graph_builder.hpp"

namespace minfer::conformance {

SmallModel::SmallModel(const SmallModelForm& form, Random& random) : form_(form) {
  const auto matrix = [&](uint64_t n_in, uint64_t n_out) { return random_matrix(form.dtype, n_in, n_out, Fill::kGauss, random); };
  const auto vector = [&](uint64_t n) { return vector_tensor(random_floats(n, 1, Fill::kGauss, random)); };
  embedding_ = random_matrix(MI_TYPE_F32, kWidth, kVocab, Fill::kGauss, random);
  embedding_.roles = kRoleEmbedding;
  for (uint32_t i = 0; i < kLayers; ++i) {
    Layer layer{vector(kWidth),
                matrix(kWidth, kHeads * kHeadDim),
                matrix(kWidth, kKvHeads * kHeadDim),
                matrix(kWidth, kKvHeads * kHeadDim),
                vector(kHeads * kHeadDim),
                vector(kKvHeads * kHeadDim),
                vector(kKvHeads * kHeadDim),
                matrix(kHeads * kHeadDim, kWidth),
                vector(kWidth),
                matrix(kWidth, kFfn),
                matrix(kWidth, kFfn),
                matrix(kFfn, kWidth)};
    layers_.push_back(std::move(layer));
  }
  norm_ = vector(kWidth);
  output_ = matrix(kWidth, kVocab);
  output_.roles = kRoleMatrix | kRoleOutput;
  std::vector<float> factors(kHeadDim / 2);
  for (float& factor : factors) factor = static_cast<float>(random.uniform(1, 4));
  factors_ = vector_tensor(factors);
  const std::vector<uint32_t> blocks = random.permutation(kv_layout().n_blocks);
  table_.assign(blocks.begin(), blocks.begin() + kSeqs * kContext / kKvBlockPositions);
}

KvLayout SmallModel::kv_layout() const { return {form_.kv_format, kKvHeads, kHeadDim, kSeqs * kContext / kKvBlockPositions + 2}; }

SmallModel::Batch SmallModel::batch(Random& random, uint32_t n, int32_t seq, uint32_t first_position) const {
  Batch out{{}, consecutive_rows(seq, first_position, n)};
  for (uint32_t i = 0; i < n; ++i) out.tokens.push_back(static_cast<int32_t>(random.below(kVocab)));
  return out;
}

void SmallModel::set_batch(Problem& problem, const Batch& batch) {
  std::vector<int32_t> positions, seqs;
  for (const BatchRow& row : batch.rows) {
    positions.push_back(row.position);
    seqs.push_back(row.seq);
  }
  problem.set(InputKind::kTokenIds, batch.tokens);
  problem.set(InputKind::kPositions, positions);
  problem.set(InputKind::kRowSeq, seqs);
}

Problem SmallModel::problem(const Batch& batch, const Shape& shape) const {
  Problem p;
  p.n_ctx = kContext;
  p.packed = !shape.observed;
  const std::vector<int32_t> zeros(batch.rows.size());
  const ValueId tokens = p.input(InputKind::kTokenIds, zeros), positions = p.input(InputKind::kPositions, zeros),
                seqs = p.input(InputKind::kRowSeq, zeros),
                table = p.input(InputKind::kBlockTable, minfer::Shape{kContext / kKvBlockPositions, kSeqs}, table_);
  set_batch(p, batch);
  const ValueId factors = form_.factors ? p.weight(factors_) : kNone;
  OpAttrs attrs;
  attrs.n_head = kHeads;
  attrs.n_head_kv = kKvHeads;
  attrs.head_dim = kHeadDim;
  attrs.eps = 1e-6f;
  attrs.rope_kind = form_.rope;
  attrs.rope_freq_base = 10000;
  attrs.rope_freq_scale = 1;
  attrs.attn_scale = 0.125f;
  OpAttrs k_attrs = attrs;
  k_attrs.n_head = kKvHeads;

  ValueId x = p.node(Op::kGetRows, {p.weight(embedding_), tokens}, {}, kEmbeddingLayer);
  for (uint32_t i = 0; i < kLayers; ++i) {
    const Layer& w = layers_[i];
    p.kv(i, kv_layout());
    const auto product = [&](ValueId in, const Tensor& matrix, const Tensor* bias) {
      std::vector<ValueId> inputs{in, p.weight(matrix)};
      if (bias && form_.bias) inputs.push_back(p.weight(*bias));
      return p.node(Op::kMatMul, inputs, {}, i);
    };
    const auto rope = [&](ValueId in, const OpAttrs& a) {
      std::vector<ValueId> inputs{in, positions};
      if (form_.factors) inputs.push_back(factors);
      return p.node(Op::kRope, inputs, a, i);
    };
    const auto bias = [&](const Tensor& tensor) { return form_.bias ? p.weight(tensor) : kNone; };

    const ValueId normed = p.node(Op::kRmsNorm, {x, p.weight(w.norm)}, attrs, i);
    ValueId q;
    if (shape.fused) {
      q = p.node(Op::kFusedQkv,
                 {normed, p.weight(w.q), p.weight(w.k), p.weight(w.v), bias(w.bq), bias(w.bk), bias(w.bv), positions, seqs, table, factors},
                 attrs, i);
    } else {
      q = rope(product(normed, w.q, &w.bq), attrs);
      const ValueId k = rope(product(normed, w.k, &w.bk), k_attrs);
      p.node(Op::kKvStore, {k, product(normed, w.v, &w.bv), positions, seqs, table}, attrs, i);
    }
    const ValueId attended = p.node(Op::kAttention, {q, positions, seqs, table}, attrs, i);
    x = p.node(Op::kAdd, {product(attended, w.o, nullptr), x}, {}, i);
    const ValueId ffn_normed = p.node(Op::kRmsNorm, {x, p.weight(w.ffn_norm)}, attrs, i);
    ValueId hidden;
    if (shape.fused) {
      hidden = p.node(Op::kFusedFfn, {ffn_normed, p.weight(w.gate), p.weight(w.up)}, {}, i);
    } else {
      const ValueId gate = p.node(Op::kSilu, {product(ffn_normed, w.gate, nullptr)}, {}, i);
      hidden = p.node(Op::kMul, {gate, product(ffn_normed, w.up, nullptr)}, {}, i);
    }
    x = p.node(Op::kAdd, {x, product(hidden, w.down, nullptr)}, {}, i);
  }
  const ValueId normed = p.node(Op::kRmsNorm, {x, p.weight(norm_)}, attrs, kOutputLayer);
  p.node(Op::kMatMul, {normed, p.weight(output_)}, {}, kOutputLayer);
  if (shape.observed)
    for (const Node& node : p.graph().nodes)
      for (const ValueId id : node.outputs) p.keep(id);
  return p;
}

ReferenceKvs SmallModel::reference_kvs() const {
  ReferenceKvs out;
  for (uint32_t i = 0; i < kLayers; ++i) out.emplace(i, ReferenceKv(kv_layout()));
  return out;
}

Result<DeviceKvs> SmallModel::device_kvs(Device& device) const {
  DeviceKvs out;
  for (uint32_t i = 0; i < kLayers; ++i) {
    MINFER_ASSIGN(out[i], make_kv(device, kv_layout()));
  }
  return out;
}

Status SmallModel::check_supported(Device& device, const Problem& problem) {
  Trial trial(device, problem);
  MINFER_ASSIGN(const bool yes, trial.supported());
  if (!yes) return unsupported("not supported");
  return {};
}

}  // namespace minfer::conformance
