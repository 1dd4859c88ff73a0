#include "planner.hpp"

#include <algorithm>
#include <set>

#include "kernels/rope_table.hpp"

namespace minfer::cpu {
namespace {

// Up to this many rows every thread prepares the left side of a product for itself.
constexpr size_t kPerThreadRows = 4;

size_t rows_of(const mi_value& value) { return value.dims[1] * value.dims[2] * value.dims[3]; }

size_t align64(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Bytes of graph memory. Two values overlap when they share some.
struct Bytes {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool overlaps(const Bytes& other) const { return begin < other.end && other.begin < end; }
};

class Planner {
 public:
  Planner(const sdk::GraphView& graph, const CpuWeights* weights, unsigned n_threads, RopeTables& rope_tables)
      : graph_(graph), weights_(weights), n_threads_(n_threads), rope_tables_(rope_tables), reader_list_(graph.n_values()) {
    for (uint32_t n = 0; n < graph.n_nodes(); ++n)
      for (uint32_t i = 0; i < graph.node(n).n_inputs; ++i)
        if (graph.node(n).inputs[i] != MI_NONE) reader_list_[graph.node(n).inputs[i]].push_back(n);
  }

  PhasePlan make() {
    plan_.n_ctx = graph_.n_ctx();
    std::vector<bool> done(graph_.n_nodes(), false);
    std::vector<uint32_t> layers;  // by phase
    for (uint32_t n = 0; n < graph_.n_nodes(); ++n) {
      if (done[n]) continue;
      const mi_node& node = graph_.node(n);
      switch (node.op) {
        case MI_OP_GET_ROWS: get_rows(node); break;
        case MI_OP_RMS_NORM: norm(n); break;
        case MI_OP_MATMUL:
          if (const uint32_t add = foldable_add(n); add != MI_NONE) {
            matmul(n, add);
            done[add] = true;
          } else {
            matmul(n, MI_NONE);
          }
          break;
        case MI_OP_ROPE: rope(node); break;
        case MI_OP_KV_STORE: kv_store(node); break;
        case MI_OP_ATTENTION: attention(node); break;
        case MI_OP_FUSED_QKV: fused_qkv(n); break;
        case MI_OP_FUSED_FFN: fused_ffn(n); break;
        case MI_OP_ADD:
        case MI_OP_MUL:
        case MI_OP_SILU:
        case MI_OP_SILU_MUL: element(node); break;
        default: sdk::fail(MI_UNSUPPORTED, "operation ", node.op);
      }
      layers.resize(plan_.phases.size(), node.layer);
    }
    plan_.own_scratch_bytes = own_end_;
    count_barriers(layers);
    return std::move(plan_);
  }

 private:
  void count_barriers(const std::vector<uint32_t>& layers) {
    std::set<uint32_t> in_layers;
    for (size_t i = 0; i < layers.size(); ++i) {
      const bool in_layer = layers[i] != MI_LAYER_EMBEDDING && layers[i] != MI_LAYER_OUTPUT;
      const bool barrier = plan_.phases[i]->barrier_after && i + 1 < layers.size();
      if (in_layer) in_layers.insert(layers[i]);
      plan_.n_barriers += barrier;
      plan_.n_layer_barriers += barrier && in_layer;
    }
    plan_.n_layers = static_cast<uint32_t>(in_layers.size());
  }

  // ---- values ----
  const mi_value& value(uint32_t id) const { return graph_.value(id); }

  Bytes bytes(uint32_t id) const {
    const mi_value& v = value(id);
    if (!v.buffer) sdk::fail(MI_INVALID_ARGUMENT, "value ", id, " has no memory");
    const auto* base = static_cast<const std::byte*>(sdk::Buffer::from(v.buffer)->host_ptr()) + v.offset_bytes;
    return {base, base + v.size_bytes};
  }
  float* memory(uint32_t id) const { return reinterpret_cast<float*>(const_cast<std::byte*>(bytes(id).begin)); }
  bool kept(uint32_t id) const { return (value(id).flags & MI_VALUE_KEPT) != 0; }

  const CpuWeight& weight(uint32_t id) const {
    if (!weights_) sdk::fail(MI_INTERNAL, "a node reads weight ", value(id).index, " but none were imported here");
    return (*weights_)[value(id).index];
  }
  const float* vector(const mi_node& node, uint32_t slot) const {
    if (!graph_.input(node, slot)) return nullptr;
    const CpuWeight& w = weight(node.inputs[slot]);
    if (!w.vector) sdk::fail(MI_INTERNAL, "weight ", value(node.inputs[slot]).index, " is no vector");
    return w.vector;
  }
  uint32_t graph_input(const mi_node& node, uint32_t slot) {
    const uint32_t kind = value(node.inputs[slot]).index;
    plan_.inputs_read |= 1u << kind;
    return kind;
  }
  // The list of batch rows that a node's positions name.
  int batch_rows(const mi_node& node, uint32_t positions_slot, uint32_t window = 0) {
    PhasePlan::RowList list;
    list.positions_input = graph_input(node, positions_slot);
    list.row_seq_input = list.positions_input == MI_INPUT_POSITIONS ? MI_INPUT_ROW_SEQ : MI_INPUT_OUT_ROW_SEQ;
    list.window = window;
    list.n_rows = value(node.inputs[positions_slot]).dims[0];
    plan_.inputs_read |= 1u << list.row_seq_input | 1u << MI_INPUT_BLOCK_TABLE;
    for (uint32_t id = 0; id < graph_.n_values(); ++id) {
      if (value(id).kind != MI_VALUE_INPUT || value(id).index != MI_INPUT_BLOCK_TABLE) continue;
      plan_.block_table_width = value(id).dims[0];
      plan_.n_seqs = value(id).dims[1];
    }
    for (size_t i = 0; i < plan_.row_lists.size(); ++i)
      if (plan_.row_lists[i].positions_input == list.positions_input && plan_.row_lists[i].window == window) return static_cast<int>(i);
    plan_.row_lists.push_back(list);
    return static_cast<int>(plan_.row_lists.size() - 1);
  }

  // ---- phases ----
  template <class T>
  T& add_phase() {
    auto phase = std::make_unique<T>();
    T& ref = *phase;
    plan_.phases.push_back(std::move(phase));
    return ref;
  }

  // Bytes of per-thread scratch that one phase uses, from offset 0: phases do not overlap in a thread.
  size_t own_place(size_t& used, size_t bytes) {
    const size_t at = used;
    used += align64(bytes);
    own_end_ = std::max(own_end_, used);
    return at;
  }
  // Room in the own scratch to pack a group of any of the weights.
  size_t packing_place(size_t& used, std::initializer_list<const CpuWeight*> weights) {
    size_t bytes = 0;
    for (const CpuWeight* weight : weights) bytes = std::max(bytes, weight->group_bytes());
    return own_place(used, bytes);
  }
  // Bytes of one of the shared places, behind the `used` first ones.
  size_t shared_place(int slot, size_t bytes, size_t used = 0) {
    plan_.shared_bytes[slot] = std::max(plan_.shared_bytes[slot], align64(used + bytes));
    return used;
  }

  static bool is_product(uint32_t op) { return op == MI_OP_MATMUL || op == MI_OP_FUSED_QKV || op == MI_OP_FUSED_FFN; }

  // The left side of a product whose input 0 is `id`, for weights of the given kind. Adds the phase that prepares it where it is shared.
  Activations activations_for(uint32_t n, bool want_q8, size_t& own_used) {
    const mi_node& node = graph_.node(n);
    const uint32_t id = node.inputs[0];
    Activations a;
    a.n_tokens = rows_of(value(id));
    a.cols = value(id).dims[0];
    a.layer = node.layer;
    a.want_q8 = want_q8;
    uint32_t source = id;
    if (const auto deferred =
            std::find_if(deferred_norms_.begin(), deferred_norms_.end(), [&](const DeferredNorm& d) { return d.out == id; });
        deferred != deferred_norms_.end()) {
      source = deferred->x;
      a.norm_weight = deferred->weight;
      a.eps = deferred->eps;
    }
    a.x = memory(source);
    a.per_thread = a.n_tokens <= kPerThreadRows;
    if (a.per_thread) {
      a.norm_offset = own_place(own_used, a.norm_bytes());
      a.q8_offset = own_place(own_used, a.q8_bytes());
    } else {
      a.norm_offset = shared_place(0, a.norm_bytes());
      a.q8_offset = shared_place(0, a.q8_bytes(), align64(a.norm_bytes()));
      const Prepared key{id, want_q8};
      if ((want_q8 || a.norm_weight) && !(prepared_ == key)) {
        plan_.phases.push_back(std::make_unique<PreparePhase>(a));
        prepared_ = key;
      }
    }
    return a;
  }

  void get_rows(const mi_node& node) {
    const uint32_t out = node.outputs[0];
    const size_t n_rows = value(node.inputs[1]).dims[0];
    if (value(node.inputs[0]).kind == MI_VALUE_WEIGHT) {
      auto& phase = add_phase<EmbeddingPhase>();
      phase.weight = &weight(node.inputs[0]);
      phase.ids_input = graph_input(node, 1);
      phase.n_rows = n_rows;
      phase.out = memory(out);
      return;
    }
    auto& phase = add_phase<SelectRowsPhase>();
    phase.x = memory(node.inputs[0]);
    phase.n_source_rows = rows_of(value(node.inputs[0]));
    phase.cols = value(node.inputs[0]).dims[0];
    phase.ids_input = graph_input(node, 1);
    phase.n_rows = n_rows;
    phase.out = memory(out);
  }

  // A norm that feeds only products is done by them, if what it reads is still there when they run.
  void norm(uint32_t n) {
    const mi_node& node = graph_.node(n);
    const uint32_t out = node.outputs[0];
    const uint32_t x = node.inputs[0];
    const auto& readers = reader_list_[out];
    bool defer = !kept(out) && !readers.empty();
    for (uint32_t reader : readers) defer = defer && is_product(graph_.node(reader).op) && graph_.node(reader).inputs[0] == out;
    if (defer) {
      const uint32_t last = std::min(readers.back() + 1, graph_.n_nodes() - 1);  // an addition behind it may be folded in
      for (uint32_t m = n + 1; m <= last; ++m)
        for (uint32_t i = 0; i < graph_.node(m).n_outputs; ++i) defer = defer && !bytes(graph_.node(m).outputs[i]).overlaps(bytes(x));
    }
    if (defer) {
      deferred_norms_.push_back({out, x, vector(node, 1), node.attrs->eps});
      return;
    }
    auto& phase = add_phase<NormPhase>();
    phase.x = memory(x);
    phase.weight = vector(node, 1);
    phase.out = memory(out);
    phase.n_rows = rows_of(value(x));
    phase.cols = value(x).dims[0];
    phase.eps = node.attrs->eps;
  }

  bool wants_q8(uint32_t weight_id) const { return !weight_type_is_float(weight(weight_id).type); }

  // The Add right behind a MatMul that is the product's only reader, if its result may be written while the product's left side
  // is still being read.
  uint32_t foldable_add(uint32_t n) const {
    const mi_node& node = graph_.node(n);
    const uint32_t out = node.outputs[0];
    if (kept(out) || reader_list_[out].size() != 1 || n + 1 >= graph_.n_nodes() || reader_list_[out][0] != n + 1) return MI_NONE;
    const mi_node& add = graph_.node(n + 1);
    if (add.op != MI_OP_ADD || add.inputs[0] == add.inputs[1]) return MI_NONE;
    const uint32_t residual = add.inputs[0] == out ? add.inputs[1] : add.inputs[0];
    if (value(residual).kind != MI_VALUE_ACTIVATION) return MI_NONE;
    const Bytes target = bytes(add.outputs[0]);
    const Bytes from = bytes(residual);
    if (target.overlaps(from) && target.begin != from.begin) return MI_NONE;
    uint32_t left = node.inputs[0];
    for (const DeferredNorm& d : deferred_norms_)
      if (d.out == left) left = d.x;
    const bool left_in_slot = ffn_value_ == node.inputs[0];
    return left_in_slot || !target.overlaps(bytes(left)) ? n + 1 : MI_NONE;
  }

  void matmul(uint32_t n, uint32_t add) {
    const mi_node& node = graph_.node(n);
    const CpuWeight& w = weight(node.inputs[1]);
    size_t own_used = 0;
    Activations a;
    if (ffn_value_ == node.inputs[0] && wants_q8(node.inputs[1])) {
      a.n_tokens = rows_of(value(node.inputs[0]));
      a.cols = value(node.inputs[0]).dims[0];
      a.layer = node.layer;
      a.want_q8 = true;
      a.shared_slot = 1;
    } else {
      a = activations_for(n, wants_q8(node.inputs[1]), own_used);
    }
    auto& phase = add_phase<MatmulPhase>();
    phase.activations = a;
    phase.weight = &w;
    phase.bias = vector(node, 2);
    phase.product = memory(node.outputs[0]);
    phase.packing_offset = packing_place(own_used, {&w});
    if (add == MI_NONE) return;
    const mi_node& sum = graph_.node(add);
    phase.residual = memory(sum.inputs[0] == node.outputs[0] ? sum.inputs[1] : sum.inputs[0]);
    phase.out = memory(sum.outputs[0]);
  }

  RopeTable rope_table(const mi_node& node, const mi_op_attrs& attrs, uint32_t factors_slot) {
    return rope_tables_.get(graph_.n_ctx(), attrs.head_dim, attrs, vector(node, factors_slot));
  }

  KvTarget kv_target(const mi_node& node) {
    const mi_kv_layer* layer = graph_.kv_layer(node.layer);
    if (!layer || !layer->k || !layer->v) sdk::fail(MI_INVALID_ARGUMENT, "layer ", node.layer, " has no KV regions here");
    KvTarget kv;
    kv.layout = kv_layout_of(layer->layout);
    plan_.n_kv_blocks = layer->layout.n_blocks;
    kv.k = static_cast<std::byte*>(sdk::Buffer::from(layer->k)->host_ptr());
    kv.v = static_cast<std::byte*>(sdk::Buffer::from(layer->v)->host_ptr());
    return kv;
  }

  void rope(const mi_node& node) {
    auto& phase = add_phase<RopePhase>();
    phase.rope = rope_table(node, *node.attrs, 2);
    phase.x = memory(node.inputs[0]);
    phase.out = memory(node.outputs[0]);
    phase.n_head = node.attrs->n_head;
    phase.n_rows = rows_of(value(node.inputs[0]));
    phase.positions_input = graph_input(node, 1);
    phase.n_ctx = graph_.n_ctx();
    phase.layer = node.layer;
  }

  void kv_store(const mi_node& node) {
    auto& phase = add_phase<KvStorePhase>();
    phase.kv = kv_target(node);
    phase.k = memory(node.inputs[0]);
    phase.v = memory(node.inputs[1]);
    phase.n_rows = rows_of(value(node.inputs[0]));
    phase.rows_of = batch_rows(node, 2);
    phase.layer = node.layer;
  }

  void attention(const mi_node& node) {
    auto& phase = add_phase<AttentionPhase>();
    phase.kv = kv_target(node);
    phase.n_head = static_cast<int32_t>(node.attrs->n_head);
    phase.scale = node.attrs->attn_scale;
    phase.q = memory(node.inputs[0]);
    phase.out = memory(node.outputs[0]);
    phase.n_rows = rows_of(value(node.inputs[0]));
    phase.rows_of = batch_rows(node, 1, node.attrs->window);
    size_t own_used = 0;
    phase.scratch_offset = own_place(own_used, AttentionPhase::scratch_bytes(phase.n_rows, phase.n_head, phase.kv.layout, graph_.n_ctx()));
    // Behind a projection of the same heads no thread needs another's results.
    if (last_qkv_ && last_qkv_->q == phase.q && last_qkv_->by_kv_head &&
        !bytes(node.outputs[0])
             .overlaps(Bytes{reinterpret_cast<const std::byte*>(last_qkv_->activations.x),
                             reinterpret_cast<const std::byte*>(last_qkv_->activations.x +
                                                                last_qkv_->activations.n_tokens * last_qkv_->activations.cols)})) {
      phase.by_kv_head = true;
      last_qkv_->barrier_after = false;
    }
    last_qkv_ = nullptr;
  }

  void fused_qkv(uint32_t n) {
    const mi_node& node = graph_.node(n);
    const bool q8 = wants_q8(node.inputs[1]) || wants_q8(node.inputs[2]) || wants_q8(node.inputs[3]);
    size_t own_used = 0;
    const Activations a = activations_for(n, q8, own_used);
    auto& phase = add_phase<QkvPhase>();
    phase.activations = a;
    phase.wq = &weight(node.inputs[1]);
    phase.wk = &weight(node.inputs[2]);
    phase.wv = &weight(node.inputs[3]);
    phase.bq = vector(node, 4);
    phase.bk = vector(node, 5);
    phase.bv = vector(node, 6);
    phase.rope = rope_table(node, *node.attrs, 10);
    phase.kv = kv_target(node);
    phase.n_head = static_cast<int32_t>(node.attrs->n_head);
    phase.q = memory(node.outputs[0]);
    phase.rows_of = batch_rows(node, 7);
    phase.layer = node.layer;
    phase.by_kv_head = a.per_thread && node.attrs->n_head_kv % n_threads_ == 0;
    phase.scratch_offset = own_place(own_used, QkvPhase::scratch_bytes(a.n_tokens, node.attrs->head_dim));
    phase.packing_offset = packing_place(own_used, {phase.wq, phase.wk, phase.wv});
    last_qkv_ = &phase;
  }

  void fused_ffn(uint32_t n) {
    const mi_node& node = graph_.node(n);
    const uint32_t out = node.outputs[0];
    size_t own_used = 0;
    const Activations a = activations_for(n, wants_q8(node.inputs[1]) || wants_q8(node.inputs[2]), own_used);
    auto& phase = add_phase<FfnPhase>();
    phase.activations = a;
    phase.gate = &weight(node.inputs[1]);
    phase.up = &weight(node.inputs[2]);
    phase.layer = node.layer;
    phase.scratch_offset = own_place(own_used, FfnPhase::scratch_bytes(a.n_tokens, phase.gate->rows, n_threads_));
    phase.packing_offset = packing_place(own_used, {phase.gate, phase.up});
    bool only_q8 = !kept(out) && value(out).dims[0] % 32 == 0;
    for (uint32_t reader : reader_list_[out])
      only_q8 = only_q8 && graph_.node(reader).op == MI_OP_MATMUL && wants_q8(graph_.node(reader).inputs[1]);
    if (only_q8) {
      phase.want_q8 = true;
      shared_place(1, a.n_tokens * value(out).dims[0] / 32 * sizeof(Q8Block));
      ffn_value_ = out;
    } else {
      phase.out = memory(out);
    }
  }

  void element(const mi_node& node) {
    auto& phase = add_phase<ElementPhase>();
    phase.op = node.op;
    phase.a = memory(node.inputs[0]);
    if (node.n_inputs > 1) phase.b = memory(node.inputs[1]);
    phase.y = memory(node.outputs[0]);
    phase.n = value(node.outputs[0]).dims[0] * rows_of(value(node.outputs[0]));
  }

  struct DeferredNorm {
    uint32_t out, x;
    const float* weight;
    float eps;
  };
  struct Prepared {
    uint32_t value = MI_NONE;
    bool q8 = false;
    bool operator==(const Prepared& o) const { return value == o.value && q8 == o.q8; }
  };

  const sdk::GraphView& graph_;
  const CpuWeights* weights_;
  unsigned n_threads_;
  RopeTables& rope_tables_;
  std::vector<std::vector<uint32_t>> reader_list_;  // by value: nodes that read it
  PhasePlan plan_;
  std::vector<DeferredNorm> deferred_norms_;
  Prepared prepared_;             // what lies in shared place 0
  uint32_t ffn_value_ = MI_NONE;  // what lies in shared place 1
  QkvPhase* last_qkv_ = nullptr;
  size_t own_end_ = 0;
};

}  // namespace

KvLayout kv_layout_of(const mi_kv_layout& layout) {
  KvLayout out;
  out.format = layout.format == MI_TYPE_F32 ? KvFormat::kF32 : layout.format == MI_TYPE_F16 ? KvFormat::kF16 : KvFormat::kQ8_0;
  out.n_kv_heads = static_cast<int32_t>(layout.n_head_kv);
  out.head_dim = static_cast<int32_t>(layout.head_dim);
  return out;
}

bool kv_layout_known(const mi_kv_layout& layout) {
  const bool format = layout.format == MI_TYPE_F32 || layout.format == MI_TYPE_F16 || layout.format == MI_TYPE_Q8_0;
  return format && kv_layout_supported(kv_layout_of(layout));
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
    case MI_OP_VIEW:
    case MI_OP_SILU_MUL: return true;
    case MI_OP_FUSED_QKV: {
      bool ok = kv_ok() && node.attrs->rope_kind <= MI_ROPE_INTERLEAVED;
      for (uint32_t slot : {1u, 2u, 3u, 4u, 5u, 6u, 10u}) ok = ok && weight_ok(slot);
      return ok;
    }
    case MI_OP_FUSED_FFN: return weight_ok(1) && weight_ok(2);
    default: return false;
  }
}

RopeTable RopeTables::get(int64_t n_ctx, int64_t head_dim, const mi_op_attrs& attrs, const float* freq_factors) {
  Key key{head_dim, attrs.rope_freq_base, attrs.rope_freq_scale, {}};
  if (freq_factors) key.freq_factors.assign(freq_factors, freq_factors + head_dim / 2);
  RopeTable out;
  out.half_dim = head_dim / 2;
  out.interleaved = attrs.rope_kind == MI_ROPE_INTERLEAVED;
  const auto found = std::find_if(tables_.begin(), tables_.end(), [&](const auto& t) { return t->key == key && t->n_ctx >= n_ctx; });
  if (found != tables_.end()) {
    out.cos = (*found)->cos.data();
    out.sin = (*found)->sin.data();
    return out;
  }
  auto table = std::make_unique<Table>();
  table->key = std::move(key);
  table->n_ctx = n_ctx;
  table->cos.resize(static_cast<size_t>(n_ctx * out.half_dim));
  table->sin.resize(table->cos.size());
  if (!rope_table(n_ctx, head_dim, attrs.rope_freq_base, attrs.rope_freq_scale, freq_factors, table->cos.data(), table->sin.data()))
    sdk::fail(MI_INVALID_ARGUMENT, "rotation of ", head_dim, " elements with base ", attrs.rope_freq_base, " and scale ",
              attrs.rope_freq_scale, " over ", n_ctx, " positions is out of range");
  out.cos = table->cos.data();
  out.sin = table->sin.data();
  tables_.push_back(std::move(table));
  return out;
}

PhasePlan make_phases(const sdk::GraphView& graph, const CpuWeights* weights, unsigned n_threads, RopeTables& rope_tables) {
  return Planner(graph, weights, n_threads, rope_tables).make();
}

}  // namespace minfer::cpu
