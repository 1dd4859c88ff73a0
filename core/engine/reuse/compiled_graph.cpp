#include "engine/reuse/compiled_graph.hpp"

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>

#include "engine/schedule/assign.hpp"
#include "engine/schedule/fuse.hpp"

namespace minfer {
namespace {

class Stopwatch {
 public:
  double lap_ms() {
    const auto now = std::chrono::steady_clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::vector<KvLayer> all_kv_layers(const LoadedModel& model, const CParams& cparams) {
  const ModelInfo& info = model.info();
  std::vector<KvLayer> layers;
  for (uint32_t l = 0; l < info.n_layers; ++l)
    layers.push_back({l, {cparams.kv_format, info.n_head_kv, info.head_dim, cparams.blocks_per_seq()}, nullptr, nullptr});
  return layers;
}

// Values that must lie in memory after their node: graph outputs, what other splits read, what is read through a view.
std::vector<uint8_t> kept_values(const CompiledGraph& compiled, size_t split) {
  const Graph& graph = compiled.graph;
  std::vector<uint8_t> root_kept(graph.values.size(), 0);
  for (ValueId id : graph.outputs) root_kept[graph.alias_root(id)] = 1;
  for (size_t s = 0; s < compiled.splits.size(); ++s) {
    for (NodeId n : compiled.splits[s].nodes)
      for (ValueId id : graph.nodes[n].inputs) {
        if (id == kNone || graph.values[id].kind != ValueKind::kActivation) continue;
        const ValueId root = graph.alias_root(id);
        if (s != split || root != id) root_kept[root] = 1;  // read elsewhere, or through a view
      }
  }
  std::vector<uint8_t> kept(graph.values.size(), 0);
  for (ValueId id = 0; id < kept.size(); ++id) kept[id] = root_kept[graph.alias_root(id)];
  return kept;
}

// Fuses what the devices support. The first pass tries everything; what a device refuses is left out of the next. A refused FusedFfn
// may come back as SiluMul, so that a third pass is the most there can be.
Result<FusedGraph> fuse_supported(const LoadedModel& model, const Graph& graph, const std::vector<uint32_t>& node_device,
                                  const CParams& cparams) {
  const std::vector<KvLayer> kv = all_kv_layers(model, cparams);
  std::set<std::pair<Op, uint32_t>> refused;  // operation, layer
  for (;;) {
    FusedGraph fused = fuse(graph, node_device, cparams, [&](const Node& node, uint32_t) { return !refused.count({node.op, node.layer}); });
    if (fused.n_fused == 0) return fused;
    const size_t n_refused = refused.size();
    for (uint32_t d = 0; d < model.devices().size(); ++d) {
      std::vector<NodeId> mine;
      for (NodeId n = 0; n < fused.graph.nodes.size(); ++n)
        if (fused.node_device[n] == d) mine.push_back(n);
      if (mine.empty()) continue;
      SplitView view;
      view.graph = &fused.graph;
      view.nodes = mine;
      view.kv = kv;
      view.n_ctx = cparams.n_ctx;
      MINFER_ASSIGN(const std::vector<bool> mask, model.devices()[d]->supports(view));
      for (size_t i = 0; i < mine.size(); ++i) {
        const Node& node = fused.graph.nodes[mine[i]];
        if (!mask[i] && node.op >= Op::kSiluMul) refused.insert({node.op, node.layer});
      }
    }
    if (refused.size() == n_refused) return fused;
  }
}

}  // namespace

Result<std::unique_ptr<CompiledGraph>> compile_graph(const LoadedModel& model, const GraphParams& params) {
  static std::atomic<uint64_t> next_uid{1};
  Stopwatch watch;
  auto compiled = std::make_unique<CompiledGraph>();
  compiled->params = params;
  MINFER_ASSIGN(const Graph built, model.build(params));
  compiled->build_ms = watch.lap_ms();
  const std::vector<uint32_t> assigned = assign(built, model.placement());
  MINFER_ASSIGN(FusedGraph fused, fuse_supported(model, built, assigned, params.cparams));
  compiled->graph = std::move(fused.graph);
  compiled->node_device = std::move(fused.node_device);
  compiled->n_fused = fused.n_fused;
  MINFER_TRY(validate(compiled->graph));
  compiled->assign_ms = watch.lap_ms();
  compiled->splits = split_graph(compiled->graph, compiled->node_device, params.cparams.observe);
  compiled->memory =
      plan_lifetimes(compiled->graph, compiled->splits, static_cast<uint32_t>(model.devices().size()), params.cparams.observe);
  compiled->plan_ms = watch.lap_ms();
  compiled->uid = next_uid++;
  return compiled;
}

bool is_bound(const CompiledGraph& compiled, std::span<const Scratch> scratch) {
  if (compiled.plans.size() != compiled.splits.size() || compiled.generations.size() != scratch.size()) return false;
  for (size_t d = 0; d < scratch.size(); ++d)
    if (compiled.memory.arena_bytes[d] > 0 && compiled.generations[d] != scratch[d].generation()) return false;
  return true;
}

Status bind_graph(CompiledGraph& compiled, const LoadedModel& model, std::span<Scratch> scratch, const KvStore& kv) {
  Stopwatch watch;
  compiled.plans.clear();
  compiled.generations.clear();
  for (size_t d = 0; d < scratch.size(); ++d) MINFER_TRY(scratch[d].reserve(compiled.memory.arena_bytes[d]));

  std::vector<std::unique_ptr<Plan>> plans;
  for (size_t s = 0; s < compiled.splits.size(); ++s) {
    const Split& split = compiled.splits[s];
    const std::vector<uint8_t> kept = kept_values(compiled, s);
    std::vector<SplitView::Place> places(compiled.graph.values.size());
    for (ValueId id = 0; id < places.size(); ++id)
      if (const uint64_t offset = compiled.memory.offset_bytes[split.device][id]; offset != kNoPlace)
        places[id] = {scratch[split.device].buffer(), offset};
    std::set<uint32_t> layers;
    for (NodeId n : split.nodes) {
      const Op op = compiled.graph.nodes[n].op;
      if (op == Op::kKvStore || op == Op::kAttention || op == Op::kFusedQkv) layers.insert(compiled.graph.nodes[n].layer);
    }
    std::vector<KvLayer> split_kv;
    for (uint32_t layer : layers) split_kv.push_back(kv.layers()[layer]);
    SplitView view;
    view.graph = &compiled.graph;
    view.nodes = split.nodes;
    view.places = places;
    view.kept = kept;
    view.kv = split_kv;
    view.uid = compiled.uid;
    view.generation = scratch[split.device].generation();
    view.n_ctx = compiled.params.cparams.n_ctx;
    auto plan = model.devices()[split.device]->create_plan(view, model.weights(split.device));
    if (!plan.ok()) return plan.error().in(text("plan on {}", model.devices()[split.device]->info().name));
    plans.push_back(std::move(*plan));
  }
  compiled.plans = std::move(plans);
  for (const Scratch& s : scratch) compiled.generations.push_back(s.generation());
  compiled.plan_ms += watch.lap_ms();
  return {};
}

std::string verify_structural(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size()) return text("{} nodes against {}", a.nodes.size(), b.nodes.size());
  for (NodeId n = 0; n < a.nodes.size(); ++n)
    if (a.nodes[n] != b.nodes[n])
      return text("node {}: {} of layer {} against {} of layer {}, or other inputs or attributes", n, op_info(a.nodes[n].op).name,
                  a.nodes[n].layer, op_info(b.nodes[n].op).name, b.nodes[n].layer);
  if (a.values.size() != b.values.size()) return text("{} values against {}", a.values.size(), b.values.size());
  for (ValueId id = 0; id < a.values.size(); ++id)
    if (a.values[id] != b.values[id]) return text("value {}: {} against {}", id, a.values[id].shape.text(), b.values[id].shape.text());
  if (a.inputs != b.inputs) return "other graph inputs";
  if (a.outputs != b.outputs) return "other graph outputs";
  return {};
}

}  // namespace minfer
