// Emits nodes into an engine GraphBuilder with one call per operation. For tests: an error is thrown with the builder's text.
#pragma once

#include <stdexcept>
#include <vector>

#include "engine/graph/graph_builder.hpp"

namespace minfer::test {

class GraphWriter {
 public:
  explicit GraphWriter(GraphBuilder& builder) : builder_(builder) {}

  uint32_t layer = 0;  // of the nodes that follow

  ValueId input(InputKind kind) { return need(builder_.input(kind)); }
  ValueId weight(uint32_t id) { return id == kNone ? kNone : need(builder_.weight(id)); }
  void output(ValueId value) {
    if (Status status = builder_.output(value); !status.ok()) throw std::logic_error(status.error().text);
  }
  // The first output, or kNone for an operation without one.
  ValueId node(Op op, std::vector<ValueId> inputs, const OpAttrs& attrs = {}, const Shape& view_shape = {}) {
    const auto outputs = need(builder_.add_node(op, layer, inputs, attrs, view_shape));
    return outputs.empty() ? kNone : outputs[0];
  }

  ValueId get_rows(ValueId source, ValueId ids) { return node(Op::kGetRows, {source, ids}); }
  ValueId rms_norm(ValueId x, ValueId w, float eps = 1e-5f) {
    OpAttrs attrs;
    attrs.eps = eps;
    return node(Op::kRmsNorm, {x, w}, attrs);
  }
  ValueId matmul(ValueId x, ValueId w, ValueId bias = kNone) { return node(Op::kMatMul, {x, w, bias}); }
  ValueId rope(ValueId x, ValueId positions, uint32_t n_head, uint32_t head_dim, RopeKind kind = RopeKind::kSplitHalves) {
    OpAttrs attrs;
    attrs.n_head = n_head;
    attrs.head_dim = head_dim;
    attrs.rope_kind = kind;
    attrs.rope_freq_base = 10000;
    attrs.rope_freq_scale = 1;
    return node(Op::kRope, {x, positions}, attrs);
  }
  void kv_store(ValueId k, ValueId v, ValueId positions, ValueId row_seq, ValueId table, uint32_t n_head_kv, uint32_t head_dim) {
    OpAttrs attrs;
    attrs.n_head_kv = n_head_kv;
    attrs.head_dim = head_dim;
    node(Op::kKvStore, {k, v, positions, row_seq, table}, attrs);
  }
  ValueId attention(ValueId q, ValueId positions, ValueId row_seq, ValueId table, uint32_t n_head, uint32_t n_head_kv, uint32_t head_dim,
                    float scale, uint32_t window = 0) {
    OpAttrs attrs;
    attrs.n_head = n_head;
    attrs.n_head_kv = n_head_kv;
    attrs.head_dim = head_dim;
    attrs.attn_scale = scale;
    attrs.window = window;
    return node(Op::kAttention, {q, positions, row_seq, table}, attrs);
  }
  ValueId add(ValueId a, ValueId b) { return node(Op::kAdd, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return node(Op::kMul, {a, b}); }
  ValueId silu(ValueId x) { return node(Op::kSilu, {x}); }
  ValueId view(ValueId x, const Shape& shape, uint64_t offset = 0) {
    OpAttrs attrs;
    attrs.view_offset = offset;
    return node(Op::kView, {x}, attrs, shape);
  }

 private:
  template <class T>
  static T need(Result<T> result) {
    if (!result.ok()) throw std::logic_error(result.error().text);
    return std::move(*result);
  }

  GraphBuilder& builder_;
};

}  // namespace minfer::test
