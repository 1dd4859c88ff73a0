#include "engine/schedule/placement.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace minfer {
namespace {

std::string layer_text(uint32_t layer) {
  if (layer == kEmbeddingLayer) return "embedding";
  if (layer == kOutputLayer) return "output";
  return text("layer {}", layer);
}

bool touches_kv(Op op) { return op == Op::kKvStore || op == Op::kAttention || op == Op::kFusedQkv; }

// The weight that decides where a node runs: the one it multiplies with or looks up. A rotation's factors do not: layers share them.
ValueId main_weight(const Graph& graph, const Node& node) {
  if (node.op == Op::kRope) return kNone;
  for (ValueId id : node.inputs)
    if (id != kNone && graph.values[id].kind == ValueKind::kWeight) return id;
  return kNone;
}

class Placer {
 public:
  Placer(ModelArchitecture& architecture, std::span<Device* const> devices, const std::vector<bool>& strict)
      : architecture_(architecture), devices_(devices), strict_(strict) {}

  Status hand_out_layers(const LayerCounts& counts) {
    const uint32_t n_layers = architecture_.info().n_layers;
    auto& layers = placement_.layer_device;
    for (uint32_t d = 0; d < devices_.size() && layers.size() < n_layers; ++d) {
      const uint32_t left = n_layers - static_cast<uint32_t>(layers.size());
      const uint32_t wanted = d < counts.size() && counts[d] ? std::min(*counts[d], left) : left;
      layers.insert(layers.end(), wanted, d);
    }
    if (layers.size() < n_layers)
      return invalid("the listed backends take {} of {} layers; list one more backend or raise gpu_layers", layers.size(), n_layers);
    const bool first_has_all = std::all_of(layers.begin(), layers.end(), [](uint32_t d) { return d == 0; });
    const auto outside = first_has_all ? 0u : static_cast<uint32_t>(devices_.size() - 1);
    placement_.embedding_device = placement_.output_device = outside;
    placement_.kv_device = layers;
    placement_.weight_device.assign(architecture_.weights().size(), outside);
    return {};
  }

  // Settles every node of one probe graph. Later probes must not contradict earlier ones: a device must support a node in all.
  Status settle(const std::vector<Graph>& probes, const CParams& cparams) {
    kv_format_ = cparams.kv_format;
    for (const Graph& graph : probes) MINFER_TRY(ask(graph, cparams));
    for (size_t p = 0; p < probes.size(); ++p)
      for (NodeId n = 0; n < probes[p].nodes.size(); ++n)
        if (probes[p].nodes[n].op != Op::kView) MINFER_TRY(settle_node(probes[p], p, n));
    return {};
  }

  Placement take() {
    static std::atomic<uint32_t> next_id{1};
    placement_.id = next_id++;
    return std::move(placement_);
  }

 private:
  // Key under which nodes of all probes share one decision.
  using Key = std::tuple<uint32_t, uint32_t, Op>;  // layer, weight id or kNone, op (kAttention for all KV operations)
  Key key(const Graph& graph, const Node& node) const {
    if (touches_kv(node.op)) return {node.layer, kNone, Op::kAttention};
    const ValueId weight = main_weight(graph, node);
    return {node.layer, weight == kNone ? kNone : graph.values[weight].index, node.op};
  }

  Error no_device_for_kv(uint32_t layer) const {
    const ModelInfo& info = architecture_.info();
    const std::string what =
        text("{}: no listed backend keeps a KV of {} heads of {} in format ", layer_text(layer), info.n_head_kv, info.head_dim);
    switch (kv_format_) {
      case KvFormat::kF32: return unsupported("{}f32", what);
      case KvFormat::kF16: return unsupported("{}f16; try kv_format f32", what);
      case KvFormat::kQ8_0: return unsupported("{}q8_0, whose groups are 32 elements; use kv_format f16", what);
    }
    return unsupported("{}{}", what, static_cast<uint32_t>(kv_format_));
  }

  Status ask(const Graph& graph, const CParams& cparams) {
    std::vector<NodeId> nodes(graph.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0u);
    std::vector<KvLayer> kv;
    const ModelInfo& info = architecture_.info();
    for (uint32_t l = 0; l < info.n_layers; ++l)
      kv.push_back({l, {cparams.kv_format, info.n_head_kv, info.head_dim, cparams.blocks_per_seq()}, nullptr, nullptr});
    SplitView view;
    view.graph = &graph;
    view.nodes = nodes;
    view.kv = kv;
    view.n_ctx = cparams.n_ctx;
    for (uint32_t d = 0; d < devices_.size(); ++d) {
      auto mask = devices_[d]->supports(view);
      if (!mask.ok()) return mask.error().in(devices_[d]->info().name);
      for (NodeId n = 0; n < graph.nodes.size(); ++n) {
        const Key k = key(graph, graph.nodes[n]);
        auto [it, fresh] = supported_.try_emplace({d, k}, true);
        it->second = it->second && (*mask)[n];
        if (const uint32_t matrix = matrix_of(graph, graph.nodes[n]); matrix != kNone) users_[matrix].insert(k);
      }
    }
    return {};
  }

  Status settle_node(const Graph& graph, size_t probe, NodeId n) {
    const Node& node = graph.nodes[n];
    const Key k = key(graph, node);
    if (probe > 0 && settled_.count(k)) return {};
    const ValueId weight = main_weight(graph, node);
    const DType dtype = weight == kNone ? DType::kF32 : graph.values[weight].dtype;
    const uint32_t wanted = placement_.device_of(node.layer);
    uint32_t chosen = kNone;
    if (auto known = settled_.find(k); known != settled_.end()) {
      chosen = known->second;
    } else {
      const uint32_t matrix = matrix_of(graph, node);
      for (uint32_t d : order_from(wanted))
        if (chosen == kNone && supported_[{d, k}] && supports_users(d, matrix)) chosen = d;
      for (uint32_t d : order_from(wanted))
        if (chosen == kNone && supported_[{d, k}]) chosen = d;  // put_weight refuses what is shared over devices
      if (chosen == kNone && touches_kv(node.op)) return no_device_for_kv(node.layer);
      if (chosen == kNone)
        return unsupported("{}: no listed backend supports {} with {}", layer_text(node.layer), op_info(node.op).name,
                           subject(graph, weight));
      if (chosen != wanted) {
        const Fallback fallback{node.layer, node.op, dtype, wanted, chosen, supported_[{wanted, k}]};
        if (wanted < strict_.size() && strict_[wanted]) return unsupported("{} (strict is set)", describe(fallback, devices_));
        placement_.fallbacks.push_back(fallback);
      }
      settled_[k] = chosen;
    }
    for (ValueId id : node.inputs)
      if (id != kNone && graph.values[id].kind == ValueKind::kWeight) MINFER_TRY(put_weight(graph.values[id].index, chosen));
    if (touches_kv(node.op)) placement_.kv_device[node.layer] = chosen;
    if (weight == kNone && !touches_kv(node.op) && chosen != wanted) placement_.weightless_device[{node.layer, node.op}] = chosen;
    return {};
  }

  // What of a node a backend may not know.
  std::string subject(const Graph& graph, ValueId weight) const {
    if (weight == kNone) return "values of type f32";
    const Value& value = graph.values[weight];
    return text("weight type {} (tensor '{}')", static_cast<uint32_t>(value.dtype), architecture_.weights()[value.index].name);
  }

  // Id of the matrix that a node uses, kNone where there is none.
  uint32_t matrix_of(const Graph& graph, const Node& node) const {
    const ValueId weight = main_weight(graph, node);
    if (weight == kNone || architecture_.weights()[graph.values[weight].index].roles == kRoleVector) return kNone;
    return graph.values[weight].index;
  }
  bool supports_users(uint32_t device, uint32_t matrix) const {
    const auto users = users_.find(matrix);
    return users == users_.end() || std::all_of(users->second.begin(), users->second.end(), [&](const Key& k) {
             return supported_.at({device, k});
           });
  }

  // A tied weight has two users; both must be on one device, since a matrix is imported once. Vectors are small: each device that
  // needs one gets it.
  Status put_weight(uint32_t id, uint32_t device) {
    auto [it, fresh] = weight_settled_.try_emplace(id, device);
    if (it->second != device && architecture_.weights()[id].roles == kRoleVector) {
      placement_.vector_copies.insert({id, device});
      return {};
    }
    if (it->second != device)
      return unsupported("tensor '{}' is used on {} and on {}; it can be placed on one device only", architecture_.weights()[id].name,
                         devices_[it->second]->info().name, devices_[device]->info().name);
    placement_.weight_device[id] = device;
    return {};
  }

  // The wanted device, those listed behind it, then host devices.
  std::vector<uint32_t> order_from(uint32_t wanted) const {
    std::vector<uint32_t> order;
    for (uint32_t d = wanted; d < devices_.size(); ++d) order.push_back(d);
    for (uint32_t d = 0; d < wanted; ++d)
      if (devices_[d]->info().host) order.push_back(d);
    return order;
  }

  ModelArchitecture& architecture_;
  std::span<Device* const> devices_;
  const std::vector<bool>& strict_;
  Placement placement_;
  std::map<std::pair<uint32_t, Key>, bool> supported_;
  std::map<uint32_t, std::set<Key>> users_;  // by weight id of a matrix: more than one where it is tied
  KvFormat kv_format_ = KvFormat::kF16;
  std::map<Key, uint32_t> settled_;
  std::map<uint32_t, uint32_t> weight_settled_;
};

}  // namespace

uint32_t Placement::device_of(uint32_t layer) const {
  if (layer == kEmbeddingLayer) return embedding_device;
  if (layer == kOutputLayer) return output_device;
  return layer < layer_device.size() ? layer_device[layer] : output_device;
}

Result<Placement> place_model(ModelArchitecture& architecture, std::span<Device* const> devices, const LayerCounts& layer_counts,
                              const std::vector<bool>& strict, const CParams& cparams) {
  if (devices.empty()) return invalid("no backend to place the model on");
  Placer placer(architecture, devices, strict);
  MINFER_TRY(placer.hand_out_layers(layer_counts));
  std::vector<Graph> probes;
  for (uint32_t n_tokens : {1u, 2u}) {
    MINFER_ASSIGN(Graph graph, build_graph(architecture, make_graph_params(n_tokens, 1, cparams)));
    probes.push_back(std::move(graph));
  }
  MINFER_TRY(placer.settle(probes, cparams));
  return placer.take();
}

namespace {

std::string describe_move(const Fallback& fallback, std::span<Device* const> devices, std::string_view dtype_name) {
  const std::string dtype = dtype_name.empty() ? std::to_string(static_cast<uint32_t>(fallback.dtype)) : std::string(dtype_name);
  const std::string what = text("{} (weight type {})", op_info(fallback.op).name, dtype);
  const std::string& to = devices[fallback.to_device]->info().name;
  if (fallback.tied) return text("{} runs on {}, where the other use of its tensor is supported", what, to);
  return text("{} is not supported on {}, runs on {}", what, devices[fallback.from_device]->info().name, to);
}

// "layer 3", "layers 0-3, 7", "embedding".
std::string layers_text(const std::vector<uint32_t>& layers) {
  if (layers.size() == 1) return layer_text(layers[0]);
  std::string out;
  for (size_t first = 0; first < layers.size();) {
    size_t end = first + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    out += text("{}{}", out.empty() ? "layers " : ", ", layers[first]);
    if (end - first > 1) out += text("-{}", layers[end - 1]);
    first = end;
  }
  return out;
}

}  // namespace

std::string describe(const Fallback& fallback, std::span<Device* const> devices, std::string_view dtype_name) {
  return layer_text(fallback.layer) + ": " + describe_move(fallback, devices, dtype_name);
}

std::vector<std::string> describe(std::span<const Fallback> fallbacks, std::span<Device* const> devices,
                                  const std::function<std::string_view(DType)>& dtype_name) {
  std::vector<std::pair<std::string, std::vector<uint32_t>>> groups;  // what is alike but for the layer
  std::vector<std::string> lines;
  for (const Fallback& fallback : fallbacks) {
    if (fallback.layer == kEmbeddingLayer || fallback.layer == kOutputLayer) {
      lines.push_back(describe(fallback, devices, dtype_name(fallback.dtype)));
      continue;
    }
    const std::string move = describe_move(fallback, devices, dtype_name(fallback.dtype));
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == move; });
    if (group == groups.end()) group = groups.insert(groups.end(), {move, {}});
    if (group->second.empty() || group->second.back() != fallback.layer) group->second.push_back(fallback.layer);
  }
  for (auto& [move, layers] : groups) {
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    lines.push_back(layers_text(layers) + ": " + move);
  }
  return lines;
}

}  // namespace minfer
