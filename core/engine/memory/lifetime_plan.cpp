#include "engine/memory/lifetime_plan.hpp"

#include <algorithm>
#include <map>

#include "base/checked_math.hpp"

namespace minfer {
namespace {

constexpr uint64_t kForever = ~uint64_t{0};

// Byte ranges of one device's scratch: best fit, lowest offset on ties, neighbours joined.
class Arena {
 public:
  uint64_t allocate(uint64_t bytes) {
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (it->second >= bytes && (best == free_.end() || it->second < best->second)) best = it;
    if (best == free_.end()) {
      // Grow at the end, over a free range that already touches it.
      uint64_t offset = size_;
      if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == size_) {
        offset = free_.rbegin()->first;
        free_.erase(std::prev(free_.end()));
      }
      size_ = offset + bytes;
      return offset;
    }
    const uint64_t offset = best->first;
    const uint64_t rest = best->second - bytes;
    free_.erase(best);
    if (rest) free_[offset + bytes] = rest;
    return offset;
  }

  void release(uint64_t offset, uint64_t bytes) {
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        previous->second += bytes;
        return;
      }
    }
    free_[offset] = bytes;
  }

  uint64_t size() const { return size_; }

 private:
  std::map<uint64_t, uint64_t> free_;  // offset -> bytes
  uint64_t size_ = 0;
};

// When each (root value, device) is last needed. Times are positions in execution order; the copies of a split happen at the
// time of its first node.
struct LastUse {
  std::vector<std::vector<uint64_t>> time;  // [device][root]
  std::vector<uint32_t> readers;            // [root]: input slots of live nodes and copies that read it
};

LastUse find_last_uses(const Graph& graph, const std::vector<Split>& splits, uint32_t n_devices) {
  LastUse use;
  use.time.assign(n_devices, std::vector<uint64_t>(graph.values.size(), 0));
  use.readers.assign(graph.values.size(), 0);
  uint64_t now = 0;
  for (const Split& split : splits) {
    for (const StagedCopy& copy : split.copies) {
      use.time[copy.from_device][copy.value] = now;
      ++use.readers[copy.value];
    }
    for (NodeId n : split.nodes) {
      for (ValueId id : graph.nodes[n].inputs) {
        if (id == kNone || graph.values[id].kind != ValueKind::kActivation) continue;
        const ValueId root = graph.alias_root(id);
        use.time[split.device][root] = now;
        ++use.readers[root];
      }
      for (ValueId id : graph.nodes[n].outputs) use.time[split.device][id] = std::max(use.time[split.device][id], now);
      ++now;
    }
  }
  for (ValueId id : graph.outputs)
    for (auto& times : use.time) times[graph.alias_root(id)] = kForever;
  return use;
}

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<Split>& splits, uint32_t n_devices, bool observe)
      : graph_(graph), use_(find_last_uses(graph, splits, n_devices)), observe_(observe), arenas_(n_devices), live_(n_devices) {
    plan_.offset_bytes.assign(n_devices, std::vector<uint64_t>(graph.values.size(), kNoPlace));
    uint64_t now = 0;
    for (const Split& split : splits) {
      for (const StagedCopy& copy : split.copies) place(split.device, copy.value);
      for (NodeId n : split.nodes) {
        for (ValueId id : graph.nodes[n].outputs)
          if (!place_over_input(graph.nodes[n], split.device, id)) place(split.device, id);
        release_until(now++);
      }
    }
    for (uint32_t d = 0; d < n_devices; ++d) {
      plan_.arena_bytes.push_back(arenas_[d].size());
      for (ValueId id = 0; id < graph.values.size(); ++id) {
        uint64_t offset = 0;
        const ValueId root = graph.alias_root(id, &offset);
        if (root != id && plan_.offset_bytes[d][root] != kNoPlace) plan_.offset_bytes[d][id] = plan_.offset_bytes[d][root] + offset;
      }
    }
  }

  LifetimePlan take() { return std::move(plan_); }

 private:
  uint64_t bytes(ValueId id) const { return align_up(std::max<uint64_t>(graph_.values[id].bytes(), 1), kScratchAlignment); }

  void place(uint32_t device, ValueId id) {
    plan_.offset_bytes[device][id] = arenas_[device].allocate(bytes(id));
    live_[device].push_back(id);
  }

  // Lets the output take over the memory of an input that nobody else reads.
  bool place_over_input(const Node& node, uint32_t device, ValueId output) {
    const uint32_t mask = op_info(node.op).in_place_mask;
    if (observe_ || !mask) return false;
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const ValueId id = node.inputs[slot];
      if (!(mask >> slot & 1) || id == kNone || graph_.values[id].kind != ValueKind::kActivation) continue;
      const bool is_whole = graph_.alias_root(id) == id || graph_.values[graph_.alias_root(id)].bytes() == graph_.values[id].bytes();
      const ValueId root = graph_.alias_root(id);
      if (!is_whole || use_.readers[root] != 1 || use_.time[device][root] == kForever || bytes(root) != bytes(output)) continue;
      auto& live = live_[device];
      const auto held = std::find(live.begin(), live.end(), root);
      if (held == live.end()) continue;
      *held = output;
      plan_.offset_bytes[device][output] = plan_.offset_bytes[device][root];
      ++plan_.n_in_place;
      return true;
    }
    return false;
  }

  // Every device: a copy that reads a value may stand in another device's split.
  void release_until(uint64_t now) {
    if (observe_) return;
    for (uint32_t d = 0; d < live_.size(); ++d) {
      auto& live = live_[d];
      for (size_t i = 0; i < live.size();) {
        if (use_.time[d][live[i]] > now) {
          ++i;
          continue;
        }
        arenas_[d].release(plan_.offset_bytes[d][live[i]], bytes(live[i]));
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  const Graph& graph_;
  LastUse use_;
  bool observe_;
  std::vector<Arena> arenas_;
  std::vector<std::vector<ValueId>> live_;  // by device: root values that hold memory
  LifetimePlan plan_;
};

}  // namespace

LifetimePlan plan_lifetimes(const Graph& graph, const std::vector<Split>& splits, uint32_t n_devices, bool observe) {
  return Planner(graph, splits, n_devices, observe).take();
}

}  // namespace minfer
