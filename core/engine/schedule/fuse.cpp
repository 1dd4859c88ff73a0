#include "engine/schedule/fuse.hpp"

#include <optional>

namespace minfer {
namespace {

// Finds patterns in a graph and collects what replaces them: nodes that vanish and nodes that stand where a chain ended.
class Fuser {
 public:
  Fuser(const Graph& graph, const std::vector<uint32_t>& node_device, const std::function<bool(const Node&, uint32_t)>& allow)
      : graph_(graph),
        device_(node_device),
        allow_(allow),
        readers_(graph.consumer_edges(graph.live_nodes())),
        removed_(graph.nodes.size(), false),
        replaced_(graph.nodes.size()) {
    for (ValueId id : graph.outputs) ++readers_[id];
  }

  void silu_mul_and_ffn(bool fuse_ffn) {
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const Node& mul = graph_.nodes[n];
      if (mul.op != Op::kMul) continue;
      for (size_t gate_slot : {0u, 1u}) {
        const NodeId silu = sole_source(mul.inputs[gate_slot], Op::kSilu, n);
        if (silu == kNone) continue;
        const ValueId gate = graph_.nodes[silu].inputs[0];
        const ValueId up = mul.inputs[1 - gate_slot];
        if (!fuse_ffn || !try_ffn(n, silu, gate, up)) replace({silu}, n, {Op::kSiluMul, mul.layer, {gate, up}, mul.outputs, {}});
        break;
      }
    }
  }

  void qkv() {
    for (NodeId n = 0; n < graph_.nodes.size(); ++n)
      if (graph_.nodes[n].op == Op::kKvStore) try_qkv(n);
  }

  FusedGraph take() {
    FusedGraph out;
    out.graph = graph_;
    out.graph.nodes.clear();
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      if (removed_[n]) continue;
      out.n_fused += replaced_[n].has_value();
      const auto id = static_cast<NodeId>(out.graph.nodes.size());
      out.graph.nodes.push_back(replaced_[n] ? *replaced_[n] : graph_.nodes[n]);
      out.node_device.push_back(device_[n]);
      for (ValueId value : out.graph.nodes.back().outputs) out.graph.values[value].producer = id;
    }
    drop_unused_values(out.graph);
    return out;
  }

 private:
  // The node that makes `value`, if it is a live `op` on the device of `reader`, read by nobody else and not taken yet.
  NodeId sole_source(ValueId value, Op op, NodeId reader) const {
    if (value == kNone || graph_.values[value].kind != ValueKind::kActivation || readers_[value] != 1) return kNone;
    const NodeId n = graph_.values[value].producer;
    return graph_.nodes[n].op == op && device_[n] == device_[reader] && !removed_[n] && !replaced_[n] ? n : kNone;
  }

  bool replace(std::initializer_list<NodeId> gone, NodeId at, Node fused) {
    if (!allow_(fused, device_[at])) return false;
    for (NodeId n : gone) removed_[n] = true;
    replaced_[at] = std::move(fused);
    return true;
  }

  bool try_ffn(NodeId mul, NodeId silu, ValueId gate, ValueId up) {
    const NodeId gate_matmul = sole_source(gate, Op::kMatMul, mul);
    const NodeId up_matmul = sole_source(up, Op::kMatMul, mul);
    if (gate_matmul == kNone || up_matmul == kNone) return false;
    const auto& g = graph_.nodes[gate_matmul].inputs;
    const auto& u = graph_.nodes[up_matmul].inputs;
    const auto has_bias = [](const std::vector<ValueId>& in) { return in.size() > 2 && in[2] != kNone; };
    if (g[0] != u[0] || has_bias(g) || has_bias(u)) return false;
    const Node& last = graph_.nodes[mul];
    return replace({gate_matmul, up_matmul, silu}, mul, {Op::kFusedFfn, last.layer, {g[0], g[1], u[1]}, last.outputs, {}});
  }

  void try_qkv(NodeId store) {
    const Node& kv = graph_.nodes[store];
    const NodeId k_rope = sole_source(kv.inputs[0], Op::kRope, store);
    if (k_rope == kNone) return;
    const NodeId k = sole_source(graph_.nodes[k_rope].inputs[0], Op::kMatMul, store);
    const NodeId v = sole_source(kv.inputs[1], Op::kMatMul, store);
    if (k == kNone || v == kNone) return;
    // One set of positions and one head shape stand for both operations in the fused node.
    const Node& rope = graph_.nodes[k_rope];
    if (rope.inputs[1] != kv.inputs[2] || rope.attrs.n_head != kv.attrs.n_head_kv || rope.attrs.head_dim != kv.attrs.head_dim) return;
    const ValueId x = graph_.nodes[k].inputs[0];
    if (graph_.nodes[v].inputs[0] != x) return;
    const NodeId q_rope = find_q_rope(store, x, graph_.nodes[k_rope]);
    if (q_rope == kNone) return;
    const NodeId q = graph_.values[graph_.nodes[q_rope].inputs[0]].producer;
    const auto slot = [&](NodeId n, size_t i) { return i < graph_.nodes[n].inputs.size() ? graph_.nodes[n].inputs[i] : kNone; };
    OpAttrs attrs = graph_.nodes[q_rope].attrs;
    attrs.n_head_kv = kv.attrs.n_head_kv;
    // It stands at the later of the two ends, so that all its readers come behind it.
    const NodeId at = std::max(q_rope, store);
    const NodeId other = std::min(q_rope, store);
    for (NodeId n = other + 1; n < at; ++n) {
      if (graph_.nodes[n].op == Op::kAttention && graph_.nodes[n].layer == kv.layer) return;  // reads the KV before q is there
      for (ValueId id : graph_.nodes[n].inputs)
        if (id == graph_.nodes[q_rope].outputs[0]) return;  // reads q before the KV is stored
    }
    replace({q, k, v, k_rope, other}, at,
            {Op::kFusedQkv,
             kv.layer,
             {x, slot(q, 1), slot(k, 1), slot(v, 1), slot(q, 2), slot(k, 2), slot(v, 2), kv.inputs[2], kv.inputs[3], kv.inputs[4],
              slot(q_rope, 2)},
             graph_.nodes[q_rope].outputs,
             attrs});
  }

  // The rotation of a query that comes from the same x with the same positions and rotation as k.
  NodeId find_q_rope(NodeId store, ValueId x, const Node& k_rope) const {
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) {
      const Node& rope = graph_.nodes[n];
      if (rope.op != Op::kRope || rope.layer != graph_.nodes[store].layer || device_[n] != device_[store] || removed_[n]) continue;
      if (rope.outputs == k_rope.outputs || rope.inputs[1] != k_rope.inputs[1]) continue;
      if ((rope.inputs.size() > 2 ? rope.inputs[2] : kNone) != (k_rope.inputs.size() > 2 ? k_rope.inputs[2] : kNone)) continue;
      OpAttrs attrs = rope.attrs;
      attrs.n_head = k_rope.attrs.n_head;
      if (attrs != k_rope.attrs) continue;
      const NodeId matmul = sole_source(rope.inputs[0], Op::kMatMul, store);
      if (matmul != kNone && graph_.nodes[matmul].inputs[0] == x) return n;
    }
    return kNone;
  }

  // Values of vanished nodes keep their slot in the table only if something still names them.
  static void drop_unused_values(Graph& graph) {
    std::vector<bool> used(graph.values.size(), false);
    for (ValueId id : graph.inputs) used[id] = true;
    for (const Node& node : graph.nodes) {
      for (ValueId id : node.inputs)
        if (id != kNone) used[id] = true;
      for (ValueId id : node.outputs) used[id] = true;
    }
    std::vector<ValueId> renamed(graph.values.size(), kNone);
    std::vector<Value> kept;
    for (ValueId id = 0; id < graph.values.size(); ++id) {
      if (!used[id]) continue;
      renamed[id] = static_cast<ValueId>(kept.size());
      kept.push_back(graph.values[id]);
    }
    const auto rename = [&](ValueId& id) {
      if (id != kNone) id = renamed[id];
    };
    for (Value& value : kept) rename(value.alias_of);
    for (Node& node : graph.nodes) {
      for (ValueId& id : node.inputs) rename(id);
      for (ValueId& id : node.outputs) rename(id);
    }
    for (ValueId& id : graph.inputs) rename(id);
    for (ValueId& id : graph.outputs) rename(id);
    graph.values = std::move(kept);
  }

  const Graph& graph_;
  const std::vector<uint32_t>& device_;
  const std::function<bool(const Node&, uint32_t)>& allow_;
  std::vector<uint32_t> readers_;
  std::vector<bool> removed_;
  std::vector<std::optional<Node>> replaced_;
};

}  // namespace

FusedGraph fuse(const Graph& graph, const std::vector<uint32_t>& node_device, const CParams& cparams,
                const std::function<bool(const Node&, uint32_t)>& allow) {
  Fuser fuser(graph, node_device, allow);
  fuser.silu_mul_and_ffn(cparams.fuse_ffn);
  if (cparams.fuse_qkv) fuser.qkv();
  return fuser.take();
}

}  // namespace minfer
