// The shape rule of each operation: what minfer/abi/graph.h promises, checked.
#include "engine/graph/graph_builder.hpp"

namespace minfer {
namespace {

// The inputs of one node, with errors that name operation and slot.
class Inputs {
 public:
  Inputs(const Graph& graph, const Node& node) : graph_(graph), node_(node), info_(op_info(node.op)) {}

  bool has(size_t slot) const { return slot < node_.inputs.size() && node_.inputs[slot] != kNone; }
  const Value& operator[](size_t slot) const { return graph_.values[node_.inputs[slot]]; }
  const Shape& shape(size_t slot) const { return (*this)[slot].shape; }

  Status check_slots() const {
    if (node_.inputs.size() < info_.min_inputs || node_.inputs.size() > info_.max_inputs)
      return bad("has {} inputs, expects {} to {}", node_.inputs.size(), info_.min_inputs, info_.max_inputs);
    for (size_t slot = 0; slot < node_.inputs.size(); ++slot) {
      const ValueId id = node_.inputs[slot];
      if (id == kNone && !(info_.optional_mask >> slot & 1)) return bad("input {} is missing", slot);
      if (id != kNone && id >= graph_.values.size()) return bad("input {} is value {}, which does not exist", slot, id);
    }
    return {};
  }

  // The slot holds activations (f32 made by a node).
  Status activation(size_t slot) const {
    if ((*this)[slot].kind != ValueKind::kActivation) return bad("input {} must be an activation", slot);
    return {};
  }
  Status weight(size_t slot, const Shape& expected) const {
    if (!has(slot)) return {};
    if ((*this)[slot].kind != ValueKind::kWeight) return bad("input {} must be a weight", slot);
    return same(slot, expected);
  }
  Status ids(size_t slot, uint64_t count) const {
    if ((*this)[slot].kind != ValueKind::kInput) return bad("input {} must be a graph input", slot);
    if (shape(slot).elements() != count) return bad("input {} has {} entries, expects {}", slot, shape(slot).elements(), count);
    return {};
  }
  Status block_table(size_t slot) const {
    const Value& value = (*this)[slot];
    if (value.kind != ValueKind::kInput || value.index != static_cast<uint32_t>(InputKind::kBlockTable))
      return bad("input {} must be the block table", slot);
    return {};
  }
  Status same(size_t slot, const Shape& expected) const {
    if (shape(slot).dims == expected.dims) return {};
    return bad("input {} has shape {}, expects {}", slot, shape(slot).text(), expected.text());
  }

  template <class... Args>
  Error bad(std::string_view pattern, const Args&... args) const {
    return invalid(pattern, args...).in(text("layer {}, {}", node_.layer, info_.name));
  }

 private:
  const Graph& graph_;
  const Node& node_;
  const OpInfo& info_;
};

Shape with_first(const Shape& shape, uint64_t first) {
  Shape out = shape;
  out.dims[0] = first;
  return out;
}

Status matmul_weight(const Inputs& in, size_t slot, uint64_t n_in) {
  if (in[slot].kind != ValueKind::kWeight) return in.bad("input {} must be a weight", slot);
  if (in.shape(slot).n_dims != 2 || in.shape(slot).dims[0] != n_in)
    return in.bad("weight has shape {}, expects [{}, n]", in.shape(slot).text(), n_in);
  return {};
}

Status heads(const Inputs& in, const OpAttrs& a, uint64_t width, uint32_t n_head) {
  if (a.head_dim == 0 || n_head == 0) return in.bad("head count {} and head size {} must be positive", n_head, a.head_dim);
  if (width != uint64_t{n_head} * a.head_dim) return in.bad("row of {} elements is not {} heads of {}", width, n_head, a.head_dim);
  return {};
}

}  // namespace

Result<std::vector<Shape>> infer_shapes(const Graph& graph, const Node& node, const Shape& view_shape) {
  if (!find_op(static_cast<uint32_t>(node.op))) return unsupported("operation {} is not known", static_cast<uint32_t>(node.op));
  const Inputs in(graph, node);
  MINFER_TRY(in.check_slots());
  const OpAttrs& a = node.attrs;
  const Shape x = in.shape(0);
  const uint64_t rows = x.rows();
  switch (node.op) {
    case Op::kGetRows:
      if (in[0].kind == ValueKind::kInput) return in.bad("source must be a weight or an activation");
      MINFER_TRY(in.ids(1, in.shape(1).elements()));
      return std::vector{Shape{x.dims[0], in.shape(1).elements()}};
    case Op::kRmsNorm:
      MINFER_TRY(in.activation(0));
      MINFER_TRY(in.weight(1, Shape{x.dims[0]}));
      return std::vector{x};
    case Op::kMatMul:
      MINFER_TRY(in.activation(0));
      MINFER_TRY(matmul_weight(in, 1, x.dims[0]));
      MINFER_TRY(in.weight(2, Shape{in.shape(1).dims[1]}));
      return std::vector{with_first(x, in.shape(1).dims[1])};
    case Op::kRope:
      MINFER_TRY(in.activation(0));
      MINFER_TRY(in.ids(1, rows));
      MINFER_TRY(in.weight(2, Shape{a.head_dim / 2}));
      MINFER_TRY(heads(in, a, x.dims[0], a.n_head));
      if (a.head_dim % 2) return in.bad("head size {} is odd", a.head_dim);
      return std::vector{x};
    case Op::kKvStore:
      MINFER_TRY(in.activation(0));
      MINFER_TRY(in.activation(1));
      MINFER_TRY(in.same(1, x));
      MINFER_TRY(in.ids(2, rows));
      MINFER_TRY(in.ids(3, rows));
      MINFER_TRY(in.block_table(4));
      MINFER_TRY(heads(in, a, x.dims[0], a.n_head_kv));
      return std::vector<Shape>{};
    case Op::kAttention:
      MINFER_TRY(in.activation(0));
      MINFER_TRY(in.ids(1, rows));
      MINFER_TRY(in.ids(2, rows));
      MINFER_TRY(in.block_table(3));
      MINFER_TRY(heads(in, a, x.dims[0], a.n_head));
      if (a.n_head_kv == 0 || a.n_head % a.n_head_kv) return in.bad("{} heads do not divide over {} KV heads", a.n_head, a.n_head_kv);
      return std::vector{x};
    case Op::kAdd:
    case Op::kMul:
    case Op::kSiluMul:
      MINFER_TRY(in.activation(0));
      MINFER_TRY(in.activation(1));
      MINFER_TRY(in.same(1, x));
      return std::vector{x};
    case Op::kSilu: MINFER_TRY(in.activation(0)); return std::vector{x};
    case Op::kView: {
      MINFER_TRY(in.activation(0));
      uint64_t room = a.view_offset <= x.elements() ? x.elements() - a.view_offset : 0;
      for (uint64_t dim : view_shape.dims) room = dim ? room / dim : 0;  // the product of the sizes may not wrap
      if (room == 0) return in.bad("shape {} at offset {} does not fit into {}", view_shape.text(), a.view_offset, x.text());
      return std::vector{view_shape};
    }
    case Op::kFusedQkv:
      MINFER_TRY(in.activation(0));
      for (size_t i = 0; i < 3; ++i) {
        MINFER_TRY(matmul_weight(in, 1 + i, x.dims[0]));
        MINFER_TRY(in.weight(4 + i, Shape{in.shape(1 + i).dims[1]}));
        MINFER_TRY(heads(in, a, in.shape(1 + i).dims[1], i == 0 ? a.n_head : a.n_head_kv));
      }
      MINFER_TRY(in.ids(7, rows));
      MINFER_TRY(in.ids(8, rows));
      MINFER_TRY(in.block_table(9));
      MINFER_TRY(in.weight(10, Shape{a.head_dim / 2}));
      return std::vector{with_first(x, in.shape(1).dims[1])};
    case Op::kFusedFfn:
      MINFER_TRY(in.activation(0));
      MINFER_TRY(matmul_weight(in, 1, x.dims[0]));
      MINFER_TRY(matmul_weight(in, 2, x.dims[0]));
      MINFER_TRY(in.same(2, in.shape(1)));
      return std::vector{with_first(x, in.shape(1).dims[1])};
  }
  return internal_error("operation {} has no shape rule", op_info(node.op).name);
}

}  // namespace minfer
