#include "planner.hpp"

#include <algorithm>

namespace minfer::opencl {
namespace {

constexpr size_t kGroup = 64;          // work-items of most kernels
constexpr uint64_t kTokensAtOnce = 8;  // of the kernels for several tokens

uint64_t rows_of(const mi_value& value) { return value.dims[1] * value.dims[2] * value.dims[3]; }
size_t groups_for(uint64_t items, uint64_t per_group) { return static_cast<size_t>((items + per_group - 1) / per_group); }
cl_uint u32(uint64_t value) { return static_cast<cl_uint>(value); }

struct MatmulNames {
  const char* one;
  const char* several;
};
MatmulNames matmul_names(WeightForm form) {
  switch (form) {
    case WeightForm::kF32: return {"matmul_f32_1", "matmul_f32_8"};
    case WeightForm::kF16: return {"matmul_f16_1", "matmul_f16_8"};
    case WeightForm::kBf16: return {"matmul_bf16_1", "matmul_bf16_8"};
    case WeightForm::kQ: return {"matmul_q_1", "matmul_q_8"};
    case WeightForm::kQMin: return {"matmul_q_min_1", "matmul_q_min_8"};
    case WeightForm::kK: return {"matmul_k_1", "matmul_k_8"};
    case WeightForm::kKMin: return {"matmul_k_min_1", "matmul_k_min_8"};
    default: return {"matmul_k_mins_1", "matmul_k_mins_8"};
  }
}

class Planner {
 public:
  Planner(const sdk::GraphView& graph, const OpenclWeights* weights, Context& context, QuantizedRows& quantized, RopeTables& rope_tables)
      : graph_(graph), weights_(weights), context_(context), quantized_(quantized), rope_tables_(rope_tables) {}

  std::unique_ptr<OpenclPlan> make() {
    parts_.n_ctx = graph_.n_ctx();
    reserve_quantized();
    for (uint32_t n = 0; n < graph_.n_nodes(); ++n) {
      const mi_node& node = graph_.node(n);
      switch (node.op) {
        case MI_OP_GET_ROWS: get_rows(node); break;
        case MI_OP_RMS_NORM: rms_norm(node); break;
        case MI_OP_MATMUL: matmul(node); break;
        case MI_OP_ROPE: rope(node); break;
        case MI_OP_KV_STORE: kv_store(node); break;
        case MI_OP_ATTENTION: attention(node); break;
        case MI_OP_ADD: element("add", node); break;
        case MI_OP_MUL: element("mul", node); break;
        case MI_OP_SILU: element("silu", node); break;
        case MI_OP_VIEW: break;
        default: sdk::fail(MI_UNSUPPORTED, "operation ", node.op);
      }
    }
    return std::make_unique<OpenclPlan>(context_, std::move(parts_));
  }

 private:
  // ---- values ----
  const mi_value& value(uint32_t id) const { return graph_.value(id); }
  Place place(uint32_t id) const {
    const mi_value& v = value(id);
    if (!v.buffer || v.offset_bytes % sizeof(float) != 0) sdk::fail(MI_INVALID_ARGUMENT, "value ", id, " has no memory");
    return {mem_of(v.buffer), v.offset_bytes / sizeof(float)};
  }
  static cl_mem mem_of(mi_buffer* buffer) { return static_cast<OpenclBuffer*>(sdk::Buffer::from(buffer))->mem(); }
  const Weight& weight(uint32_t id) const {
    const Weight* found = weights_ ? weights_->find(value(id).index) : nullptr;
    if (!found) sdk::fail(MI_INTERNAL, "a node reads weight ", value(id).index, ", which was not imported here");
    return *found;
  }
  const Weight* optional_weight(const mi_node& node, uint32_t slot) const {
    return graph_.input(node, slot) ? &weight(node.inputs[slot]) : nullptr;
  }
  cl_mem vector(const mi_node& node, uint32_t slot) const {
    const Weight& w = weight(node.inputs[slot]);
    if (!w.vector) sdk::fail(MI_INTERNAL, "weight ", value(node.inputs[slot]).index, " is no vector");
    return w.vector.get();
  }
  cl_mem tiles(const Weight& w) const {
    if (!w.tiles) sdk::fail(MI_INTERNAL, "a vector is used as a matrix");
    return w.tiles.get();
  }

  // ---- graph inputs ----
  cl_mem bind(uint32_t kind, uint64_t count) {
    PlanParts::Input& input = parts_.inputs[kind];
    if (input.count == 0) {
      input.mem = context_.alloc(count * sizeof(int32_t), "a graph input");
      input.count = count;
    }
    return input.mem.get();
  }
  cl_mem graph_input(const mi_node& node, uint32_t slot) {
    const mi_value& v = value(node.inputs[slot]);
    return bind(v.index, v.dims[0] * rows_of(v));
  }
  struct RowInputs {
    cl_mem positions, row_seq, table;
    cl_uint table_width;
  };
  // positions, row_seq and block_table of a node, from `slot` on.
  RowInputs row_inputs(const mi_node& node, uint32_t slot, uint32_t window) {
    const mi_value& table = value(node.inputs[slot + 2]);
    parts_.table_width = table.dims[0];
    parts_.n_seqs = rows_of(table);
    const PlanParts::RowCheck check{value(node.inputs[slot]).index, value(node.inputs[slot + 1]).index, window};
    if (std::find(parts_.row_checks.begin(), parts_.row_checks.end(), check) == parts_.row_checks.end()) parts_.row_checks.push_back(check);
    return {graph_input(node, slot), graph_input(node, slot + 1), graph_input(node, slot + 2), u32(table.dims[0])};
  }
  void check_range(const mi_node& node, uint32_t slot, uint64_t limit, const char* what) {
    const uint32_t input = value(node.inputs[slot]).index;
    for (const auto& c : parts_.range_checks)
      if (c.input == input && c.limit == limit) return;
    parts_.range_checks.push_back({input, limit, what});
  }

  template <class... Args>
  void launch(const char* name, size_t groups, size_t local, size_t groups1, const Args&... args) {
    parts_.launches.push_back(context_.prepare(name, Context::kNoFormat, groups, local, groups1, args...));
  }

  // ---- operations ----
  void get_rows(const mi_node& node) {
    const mi_value& source = value(node.inputs[0]);
    const cl_mem ids = graph_input(node, 1);
    const uint64_t n = source.dims[0], n_elements = n * value(node.inputs[1]).dims[0];
    const Place out = place(node.outputs[0]);
    const size_t groups = groups_for(n_elements, kGroup);
    check_range(node, 1, rows_of(source), source.kind == MI_VALUE_WEIGHT ? "token id" : "row number");
    if (source.kind != MI_VALUE_WEIGHT) {
      launch("select_rows", groups, kGroup, 1, place(node.inputs[0]), ids, out, u32(n), cl_ulong{n_elements});
      return;
    }
    const Weight& w = weight(node.inputs[0]);
    const WeightFormInfo& form = *weight_form(w.dtype);
    if (form.is_float()) {
      const char* name = form.form == WeightForm::kF32 ? "get_rows_f32" : form.form == WeightForm::kF16 ? "get_rows_f16" : "get_rows_bf16";
      launch(name, groups, kGroup, 1, tiles(w), ids, out, u32(n), cl_ulong{n_elements});
    } else {
      launch("get_rows_quantised", groups, kGroup, 1, tiles(w), ids, out, u32(n), cl_ulong{n_elements}, cl_uint{form.has_min},
             cl_uint{form.has_sub});
    }
  }

  void rms_norm(const mi_node& node) {
    const mi_value& x = value(node.inputs[0]);
    launch("rms_norm", rows_of(x), kGroup, 1, place(node.inputs[0]), vector(node, 1), place(node.outputs[0]), u32(x.dims[0]),
           cl_float{node.attrs->eps});
  }

  bool wants_integers(const mi_node& node) const {
    return node.op == MI_OP_MATMUL && !weight_form(weight(node.inputs[1]).dtype)->is_float();
  }

  // Memory for the largest left side that is quantised here.
  void reserve_quantized() {
    uint64_t elements = 0;
    for (uint32_t n = 0; n < graph_.n_nodes(); ++n)
      if (wants_integers(graph_.node(n))) {
        const mi_value& x = value(graph_.node(n).inputs[0]);
        elements = std::max(elements, x.dims[0] * rows_of(x));
      }
    if (elements > quantized_.elements) {
      const auto shared = [&](uint64_t bytes) { return std::make_shared<const Mem>(context_.alloc(bytes, "quantised activations")); };
      quantized_ = {elements, shared(elements), shared(elements / 32 * sizeof(cl_float)), shared(elements / 32 * sizeof(cl_int2))};
    }
    if (elements > 0) parts_.kept = {quantized_.q, quantized_.scale, quantized_.sums};
  }

  // Products of one left side follow one another: it is quantised once for all of them.
  void quantize(const mi_node& node) {
    if (quantized_value_ == node.inputs[0]) return;
    quantized_value_ = node.inputs[0];
    const mi_value& x = value(node.inputs[0]);
    const uint64_t n_blocks = x.dims[0] / 32 * rows_of(x);
    launch("quantize", groups_for(n_blocks, kGroup), kGroup, 1, place(node.inputs[0]), quantized_.q->get(), quantized_.scale->get(),
           quantized_.sums->get(), cl_ulong{n_blocks}, u32(x.dims[0] / 32), context_.status(),
           failure_code(FailureKind::kActivation, node.layer));
  }

  void matmul(const mi_node& node) {
    const mi_value& x = value(node.inputs[0]);
    const Weight& w = weight(node.inputs[1]);
    const uint64_t n_tokens = rows_of(x);
    const WeightFormInfo& form = *weight_form(w.dtype);
    const MatmulNames names = matmul_names(form.form);
    const char* name = n_tokens == 1 ? names.one : names.several;
    const size_t groups = groups_for(w.n_rows, kTileRows), groups1 = n_tokens == 1 ? 1 : groups_for(n_tokens, kTokensAtOnce);
    const bool has_bias = graph_.input(node, 2) != nullptr;
    const cl_mem bias = has_bias ? vector(node, 2) : tiles(w);  // never read without one
    if (form.is_float()) {
      launch(name, groups, kTileRows, groups1, tiles(w), u32(w.n_cols), u32(w.n_rows), place(node.inputs[0]), u32(n_tokens), bias,
             cl_uint{has_bias}, place(node.outputs[0]));
      return;
    }
    quantize(node);
    launch(name, groups, kTileRows, groups1, tiles(w), u32(w.n_cols / 32), u32(w.n_rows), quantized_.q->get(), quantized_.scale->get(),
           quantized_.sums->get(), u32(n_tokens), bias, cl_uint{has_bias}, place(node.outputs[0]));
  }

  void rope(const mi_node& node) {
    const mi_op_attrs& a = *node.attrs;
    const mi_value& x = value(node.inputs[0]);
    const Weight* factors = optional_weight(node, 2);
    const RopeTable& table = rope_tables_.get(context_, graph_.n_ctx(), a, factors ? &factors->values : nullptr);
    parts_.kept.push_back(table.cos);
    parts_.kept.push_back(table.sin);
    check_range(node, 1, graph_.n_ctx(), "position");
    const uint64_t n_pairs = x.dims[0] * rows_of(x) / 2;
    launch("rope", groups_for(n_pairs, kGroup), kGroup, 1, place(node.inputs[0]), place(node.outputs[0]), graph_input(node, 1),
           table.cos->get(), table.sin->get(), cl_uint{a.n_head}, u32(a.head_dim / 2), cl_uint{a.rope_kind == MI_ROPE_INTERLEAVED},
           cl_ulong{n_pairs});
  }

  const mi_kv_layer& kv_layer(const mi_node& node) {
    const mi_kv_layer* layer = graph_.kv_layer(node.layer);
    if (!layer || !layer->k || !layer->v) sdk::fail(MI_INVALID_ARGUMENT, "layer ", node.layer, " has no KV regions here");
    parts_.n_kv_blocks = layer->layout.n_blocks;
    return *layer;
  }

  void kv_store(const mi_node& node) {
    const mi_kv_layer& kv = kv_layer(node);
    const RowInputs rows = row_inputs(node, 2, 0);
    parts_.launches.push_back(
        context_.prepare("kv_store", kv.layout.format, kv.layout.n_head_kv, kGroup, rows_of(value(node.inputs[0])), place(node.inputs[0]),
                         place(node.inputs[1]), mem_of(kv.k), mem_of(kv.v), rows.positions, rows.row_seq, rows.table, rows.table_width,
                         cl_uint{kv.layout.n_head_kv}, cl_uint{kv.layout.head_dim}, context_.status(),
                         failure_code(FailureKind::kKvNotFinite, node.layer), failure_code(FailureKind::kKvBeyondFormat, node.layer)));
  }

  void attention(const mi_node& node) {
    const mi_op_attrs& a = *node.attrs;
    const mi_kv_layer& kv = kv_layer(node);
    const RowInputs rows = row_inputs(node, 1, a.window);
    parts_.launches.push_back(context_.prepare(
        "attention", kv.layout.format, a.n_head, kGroup, rows_of(value(node.inputs[0])), place(node.inputs[0]), mem_of(kv.k), mem_of(kv.v),
        rows.positions, rows.row_seq, rows.table, rows.table_width, cl_uint{a.n_head}, cl_uint{kv.layout.n_head_kv},
        cl_uint{kv.layout.head_dim}, cl_float{a.attn_scale}, cl_uint{a.window}, place(node.outputs[0])));
  }

  void element(const char* name, const mi_node& node) {
    const mi_value& out = value(node.outputs[0]);
    const uint64_t n = out.dims[0] * rows_of(out);
    const size_t groups = groups_for(n, kGroup);
    if (node.n_inputs > 1)
      launch(name, groups, kGroup, 1, place(node.inputs[0]), place(node.inputs[1]), place(node.outputs[0]), cl_ulong{n});
    else
      launch(name, groups, kGroup, 1, place(node.inputs[0]), place(node.outputs[0]), cl_ulong{n});
  }

  const sdk::GraphView& graph_;
  const OpenclWeights* weights_;
  Context& context_;
  QuantizedRows& quantized_;
  RopeTables& rope_tables_;
  PlanParts parts_;
  uint32_t quantized_value_ = MI_NONE;  // what lies in quantized_
};

}  // namespace

std::unique_ptr<OpenclPlan> make_plan(const sdk::GraphView& graph, const OpenclWeights* weights, Context& context, QuantizedRows& quantized,
                                      RopeTables& rope_tables) {
  return Planner(graph, weights, context, quantized, rope_tables).make();
}

bool node_supported(const sdk::GraphView& graph, const mi_node& node) {
  const auto weight_ok = [&](uint32_t slot) { return !graph.input(node, slot) || weight_supported(*graph.input(node, slot)); };
  const auto kv_ok = [&] {
    const mi_kv_layer* layer = graph.kv_layer(node.layer);
    return layer && kv_layout_known(layer->layout);
  };
  switch (node.op) {
    case MI_OP_GET_ROWS: return graph.input(node, 0)->kind != MI_VALUE_WEIGHT || weight_ok(0);
    case MI_OP_RMS_NORM: return weight_ok(1);
    case MI_OP_MATMUL: return weight_ok(1) && weight_ok(2);
    case MI_OP_ROPE: return node.attrs->head_dim % 2 == 0 && node.attrs->rope_kind <= MI_ROPE_INTERLEAVED && weight_ok(2);
    case MI_OP_KV_STORE:
    case MI_OP_ATTENTION: return kv_ok();
    case MI_OP_ADD:
    case MI_OP_MUL:
    case MI_OP_SILU:
    case MI_OP_VIEW: return true;
    default: return false;
  }
}

}  // namespace minfer::opencl
