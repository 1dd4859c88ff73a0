// A graph made ready to run again and again: built, assigned, fused, planned, split, bound to scratch and KV.
#pragma once

#include <memory>
#include <vector>

#include "engine/loaded_model.hpp"
#include "engine/memory/kv_store.hpp"
#include "engine/memory/lifetime_plan.hpp"
#include "engine/memory/scratch.hpp"

namespace minfer {

struct CompiledGraph {
  GraphParams params;
  uint64_t uid = 0;  // process-wide, from 1, never reused; kept over reuses and re-maps
  Graph graph;
  std::vector<uint32_t> node_device;
  uint32_t n_fused = 0;
  std::vector<Split> splits;
  LifetimePlan memory;

  // Bound state: valid for the scratch generations below.
  std::vector<std::unique_ptr<Plan>> plans;  // by split
  std::vector<uint64_t> generations;         // by device

  // What the build cost, for traces.
  double build_ms = 0;
  double assign_ms = 0;  // assign and fuse
  double plan_ms = 0;    // lifetimes, splits, scratch, backend plans

  // Offsets and sizes of a value on the device that made it.
  uint32_t device_of(ValueId value) const { return node_device[graph.values[graph.alias_root(value)].producer]; }
};

// Build, assign, fuse, split, plan: everything that needs no memory. A pure function of model and params but for the uid.
Result<std::unique_ptr<CompiledGraph>> compile_graph(const LoadedModel& model, const GraphParams& params);

// Reserves scratch on every device and makes the backend plans. Called after compile_graph and, as the re-map, when a scratch buffer has
// moved. On failure the graph is unbound and stays so until the next call.
Status bind_graph(CompiledGraph& compiled, const LoadedModel& model, std::span<Scratch> scratch, const KvStore& kv);
bool is_bound(const CompiledGraph& compiled, std::span<const Scratch> scratch);

// How two graphs differ, node by node, or an empty text. Equal params must give equal graphs.
std::string verify_structural(const Graph& a, const Graph& b);

}  // namespace minfer
