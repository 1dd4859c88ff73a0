#include "plugin/graph_view.hpp"

namespace minfer::plugin {

// The numbers of both sides are the same: casts below rely on it.
static_assert(static_cast<uint32_t>(Op::kGetRows) == MI_OP_GET_ROWS && static_cast<uint32_t>(Op::kRmsNorm) == MI_OP_RMS_NORM &&
              static_cast<uint32_t>(Op::kMatMul) == MI_OP_MATMUL && static_cast<uint32_t>(Op::kRope) == MI_OP_ROPE &&
              static_cast<uint32_t>(Op::kKvStore) == MI_OP_KV_STORE && static_cast<uint32_t>(Op::kAttention) == MI_OP_ATTENTION &&
              static_cast<uint32_t>(Op::kAdd) == MI_OP_ADD && static_cast<uint32_t>(Op::kMul) == MI_OP_MUL &&
              static_cast<uint32_t>(Op::kSilu) == MI_OP_SILU && static_cast<uint32_t>(Op::kView) == MI_OP_VIEW &&
              static_cast<uint32_t>(Op::kSiluMul) == MI_OP_SILU_MUL && static_cast<uint32_t>(Op::kFusedQkv) == MI_OP_FUSED_QKV &&
              static_cast<uint32_t>(Op::kFusedFfn) == MI_OP_FUSED_FFN);
static_assert(static_cast<uint32_t>(InputKind::kTokenIds) == MI_INPUT_TOKEN_IDS &&
              static_cast<uint32_t>(InputKind::kPositions) == MI_INPUT_POSITIONS &&
              static_cast<uint32_t>(InputKind::kRowSeq) == MI_INPUT_ROW_SEQ &&
              static_cast<uint32_t>(InputKind::kBlockTable) == MI_INPUT_BLOCK_TABLE &&
              static_cast<uint32_t>(InputKind::kOutRows) == MI_INPUT_OUT_ROWS &&
              static_cast<uint32_t>(InputKind::kOutPositions) == MI_INPUT_OUT_POSITIONS &&
              static_cast<uint32_t>(InputKind::kOutRowSeq) == MI_INPUT_OUT_ROW_SEQ && kInputKinds == MI_INPUT_COUNT);
static_assert(static_cast<uint32_t>(ValueKind::kActivation) == MI_VALUE_ACTIVATION &&
              static_cast<uint32_t>(ValueKind::kInput) == MI_VALUE_INPUT && static_cast<uint32_t>(ValueKind::kWeight) == MI_VALUE_WEIGHT);
static_assert(static_cast<uint32_t>(RopeKind::kSplitHalves) == MI_ROPE_SPLIT_HALVES &&
              static_cast<uint32_t>(RopeKind::kInterleaved) == MI_ROPE_INTERLEAVED);
static_assert(static_cast<uint32_t>(DType::kF32) == MI_TYPE_F32 && static_cast<uint32_t>(DType::kF16) == MI_TYPE_F16 &&
              static_cast<uint32_t>(DType::kQ8_0) == MI_TYPE_Q8_0 && static_cast<uint32_t>(DType::kI32) == MI_TYPE_I32);
static_assert(static_cast<uint32_t>(KvFormat::kF32) == MI_TYPE_F32 && static_cast<uint32_t>(KvFormat::kF16) == MI_TYPE_F16 &&
              static_cast<uint32_t>(KvFormat::kQ8_0) == MI_TYPE_Q8_0 && kKvBlockPositions == MI_KV_BLOCK_POSITIONS);
static_assert(kNone == MI_NONE && kEmbeddingLayer == MI_LAYER_EMBEDDING && kOutputLayer == MI_LAYER_OUTPUT);

mi_op_attrs to_abi(const OpAttrs& a) {
  return {sizeof(mi_op_attrs), a.n_head,          a.n_head_kv,  a.head_dim, a.eps,        static_cast<uint32_t>(a.rope_kind),
          a.rope_freq_base,    a.rope_freq_scale, a.attn_scale, a.window,   a.view_offset};
}

mi_kv_layout to_abi(const KvLayout& layout) {
  return {sizeof(mi_kv_layout), static_cast<uint32_t>(layout.format), layout.n_head_kv, layout.head_dim, layout.n_blocks, 0};
}

AbiGraphView::AbiGraphView(const SplitView& split, const std::function<mi_buffer*(Buffer*)>& handle) {
  const Graph& graph = *split.graph;
  const auto handle_or_null = [&](Buffer* buffer) { return buffer ? handle(buffer) : nullptr; };

  values_.reserve(graph.values.size());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    mi_value out{};
    out.struct_size = sizeof out;
    out.kind = static_cast<uint32_t>(value.kind);
    out.dtype = static_cast<uint32_t>(value.dtype);
    out.n_dims = value.shape.n_dims;
    for (size_t i = 0; i < 4; ++i) out.dims[i] = value.shape.dims[i];
    out.index = value.index;
    if (!split.kept.empty() && split.kept[id]) out.flags = MI_VALUE_KEPT;
    if (value.kind != ValueKind::kWeight) out.size_bytes = value.bytes();
    if (!split.places.empty() && split.places[id].buffer) {
      out.buffer = handle(split.places[id].buffer);
      out.offset_bytes = split.places[id].offset_bytes;
    }
    values_.push_back(out);
  }

  // Sized at once: nodes point into attrs_.
  attrs_.reserve(split.nodes.size());
  nodes_.reserve(split.nodes.size());
  for (NodeId id : split.nodes) {
    const Node& node = graph.nodes[id];
    attrs_.push_back(to_abi(node.attrs));
    nodes_.push_back({sizeof(mi_node), static_cast<uint32_t>(node.op), node.layer, static_cast<uint32_t>(node.inputs.size()),
                      static_cast<uint32_t>(node.outputs.size()), 0, node.inputs.data(), node.outputs.data(), &attrs_.back()});
  }

  kv_layers_.reserve(split.kv.size());
  for (const KvLayer& kv : split.kv)
    kv_layers_.push_back({sizeof(mi_kv_layer), kv.layer, to_abi(kv.layout), handle_or_null(kv.k), handle_or_null(kv.v)});

  view_.struct_size = sizeof view_;
  view_.n_values = static_cast<uint32_t>(values_.size());
  view_.n_nodes = static_cast<uint32_t>(nodes_.size());
  view_.n_kv_layers = static_cast<uint32_t>(kv_layers_.size());
  view_.value_stride = sizeof(mi_value);
  view_.node_stride = sizeof(mi_node);
  view_.kv_layer_stride = sizeof(mi_kv_layer);
  view_.values = values_.data();
  view_.nodes = nodes_.data();
  view_.kv_layers = kv_layers_.data();
  view_.uid = split.uid;
  view_.generation = split.generation;
  view_.n_ctx = split.n_ctx;
}

}  // namespace minfer::plugin
