#include "engine/schedule/offload_plan.hpp"

#include <algorithm>
#include <numeric>

#include "engine/memory/lifetime_plan.hpp"

namespace minfer {
namespace {

std::string mib(uint64_t bytes) { return text("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

struct Need {
  uint64_t weights = 0, kv = 0, scratch = 0;
  uint64_t total() const { return weights + kv + scratch; }
};

std::string describe(const Need& need) { return text("weights {}, KV {}, scratch {}", mib(need.weights), mib(need.kv), mib(need.scratch)); }

class Planner {
 public:
  Planner(ModelArchitecture& architecture, const OffloadRequest& request)
      : architecture_(architecture), request_(request), n_layers_(architecture.info().n_layers) {}

  Result<OffloadPlan> plan() {
    MINFER_TRY(measure());
    uint32_t first = 0;
    for (uint32_t d = 0; d < request_.devices.size(); ++d) {
      MINFER_ASSIGN(const uint32_t taken, layers_of(d, first));
      plan_.counts.push_back(taken);
      first += taken;
    }
    if (first < n_layers_ && limited_)
      return make_error(ErrorCode::kOutOfMemory,
                        "{} of {} layers fit the memory of the listed backends; list a backend of the host behind them, or lower "
                        "context.n_ctx",
                        first, n_layers_);
    return std::move(plan_);
  }

 private:
  // What weighs how much.
  Status measure() {
    layer_bytes_.assign(n_layers_, 0);
    const auto& weights = architecture_.weights();
    for (size_t id = 0; id < weights.size(); ++id)
      (weights[id].layer < n_layers_ ? layer_bytes_[weights[id].layer] : outside_bytes_) += request_.weight_bytes[id];
    const uint32_t n_rows = std::min(request_.n_batch, request_.cparams.n_ctx);
    MINFER_ASSIGN(const Graph graph, build_graph(architecture_, make_graph_params(n_rows, 1, request_.cparams)));
    const std::vector<uint32_t> one_device(graph.nodes.size(), 0);
    scratch_bytes_ = plan_lifetimes(graph, split_graph(graph, one_device, false), 1, false).arena_bytes[0];
    return {};
  }

  // Of `count` layers from `first` on device d, with what lies outside the blocks where placement would put it there.
  Result<Need> need(uint32_t d, uint32_t first, uint32_t count) const {
    const ModelInfo& info = architecture_.info();
    Need need;
    need.weights = std::accumulate(layer_bytes_.begin() + first, layer_bytes_.begin() + first + count, uint64_t{0});
    const bool last_of_several = d > 0 && d + 1 == request_.devices.size() && plan_.counts[0] < n_layers_;
    if ((d == 0 && count == n_layers_) || last_of_several) need.weights += outside_bytes_;
    if (count == 0) return need;
    const uint32_t n_blocks = request_.cparams.blocks_per_seq() * request_.cparams.max_seqs;
    MINFER_ASSIGN(const KvRegionBytes region,
                  request_.devices[d]->kv_region_bytes({request_.cparams.kv_format, info.n_head_kv, info.head_dim, n_blocks}));
    need.kv = (region.k + region.v) * count;
    need.scratch = scratch_bytes_;
    return need;
  }

  Result<uint32_t> layers_of(uint32_t d, uint32_t first) {
    const DeviceInfo& info = request_.devices[d]->info();
    const LayerRequest wanted = d < request_.layers.size() ? request_.layers[d] : LayerRequest();
    const uint32_t left = n_layers_ - first;
    uint32_t count = left;
    if (wanted.mode == LayerRequest::Mode::kCount) {
      if (wanted.count > n_layers_)
        plan_.lines.push_back(text("gpu_layers {}: the model has {} layers, {} takes {}", wanted.count, n_layers_, info.name,
                                   left == n_layers_ ? "all of them" : text("the {} that are left", left)));
      count = std::min(wanted.count, left);
    }
    if (info.host) return count;
    if (info.memory_total_bytes == 0) {
      plan_.lines.push_back(text("offload: {} of {} layers on {} (it does not tell its memory)", count, n_layers_, info.name));
      return count;
    }
    const uint64_t free = info.memory_free_bytes;
    MINFER_ASSIGN(Need used, need(d, first, count));
    uint32_t fit = count;
    Need fitting = used;
    while (fit > 0 && fitting.total() > free) {
      MINFER_ASSIGN(fitting, need(d, first, --fit));
    }
    if (fit < count) {
      if (wanted.mode != LayerRequest::Mode::kAuto)
        return make_error(ErrorCode::kOutOfMemory,
                          "gpu_layers: {} of {} layers need {} on {} ({}), which has {} free; {}: use gpu_layers: auto or {}, or lower "
                          "context.n_ctx",
                          count, n_layers_, mib(used.total()), info.name, describe(used), mib(free),
                          fit == 0 ? std::string("not one fits") : text("{} fit", fit), fit);
      limited_ = true;
    }
    plan_.lines.push_back(text("offload: {} of {} layers on {}: {} of {} free ({})", fit, n_layers_, info.name, mib(fitting.total()),
                               mib(free), describe(fitting)));
    return fit;
  }

  ModelArchitecture& architecture_;
  const OffloadRequest& request_;
  const uint32_t n_layers_;
  std::vector<uint64_t> layer_bytes_;
  uint64_t outside_bytes_ = 0;
  uint64_t scratch_bytes_ = 0;
  bool limited_ = false;  // automatic choice left layers over for want of memory
  OffloadPlan plan_;
};

}  // namespace

Result<OffloadPlan> plan_offload(ModelArchitecture& architecture, const OffloadRequest& request) {
  return Planner(architecture, request).plan();
}

}  // namespace minfer
