// Runs a compiled graph: for each split its staged copies, then its plan. Knows nothing of caches or sequences.
#pragma once

#include <functional>

#include "engine/reuse/compiled_graph.hpp"

namespace minfer {

// Sees the result of each node of an observed graph, as it lies on the device that made it.
using NodeObserver = std::function<void(const Graph& graph, NodeId node, std::span<const float> values)>;

struct ExecutorStats {
  uint64_t splits = 0;        // run so far
  uint64_t staged_bytes = 0;  // copied between devices so far
};

class Executor {
 public:
  // Afterwards the last device is not synchronised; read_output does that.
  Status run(const CompiledGraph& compiled, const std::vector<Device*>& devices, std::span<Scratch> scratch, const StepInputs& inputs,
             const StopCheck* should_stop, const NodeObserver* observer);

  // The values of a graph output, valid until the next run. Read in place where the host can touch them.
  Result<std::span<const float>> read_output(const CompiledGraph& compiled, const std::vector<Device*>& devices, std::span<Scratch> scratch,
                                             ValueId output);

  const ExecutorStats& stats() const { return stats_; }

 private:
  Status copy(const CompiledGraph& compiled, const std::vector<Device*>& devices, std::span<Scratch> scratch, const StagedCopy& copy,
              uint32_t to_device);

  std::vector<std::byte> bounce_;
  ExecutorStats stats_;
};

}  // namespace minfer
