// How much arithmetic and memory a step of a model takes, read off its graph: what speeds are measured against.
#pragma once

#include <cstdint>
#include <map>

#include "engine/session.hpp"
#include "gguf/types.hpp"
#include "runtime/machine_ceilings.hpp"

namespace minfer {

struct StepWork {
  uint64_t weight_bytes = 0;                  // of the matrices that are multiplied, as they lie in the file; each counted once
  uint64_t kv_bytes = 0;                      // K and V rows that attention reads
  std::map<gguf::TensorType, uint64_t> macs;  // multiply-accumulates with matrices of each type; attention is not counted
  uint64_t total_macs() const;
};

// One step that appends n_tokens to a sequence of `depth` positions and gives n_out rows of logits.
Result<StepWork> step_work(const Session& session, uint32_t n_tokens, uint32_t n_out, uint32_t depth);

// Multiply-accumulates per cycle of one core if it did nothing but this work's integer products at the machine's best; 0 where part of
// the work is not on integers or the machine's figures are not known.
double integer_bound(const StepWork& work, const MachineCeilings& ceilings);

}  // namespace minfer
