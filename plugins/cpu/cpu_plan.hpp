// One prepared split: its phases, and what a run binds.
#pragma once

#include "planner.hpp"

namespace minfer::cpu {

// Memory that plans of one device share, since one runs at a time. Grows when a plan is made, never in a run.
class Workspace {
 public:
  void reserve(unsigned n_threads, size_t own_bytes, size_t shared0_bytes, size_t shared1_bytes);
  std::byte* own(unsigned thread) const { return own_.data() + thread * own_stride_; }
  std::byte* shared(int slot) const { return shared_[slot].data(); }

 private:
  PageMemory own_;
  size_t own_stride_ = 0;
  PageMemory shared_[2];
};

class CpuPlan final : public sdk::Plan {
 public:
  // weights: what the phases read, or null.
  CpuPlan(PhasePlan phases, CpuWeights* weights, const Kernels& kernels, ThreadTeam& team, Workspace& workspace);
  void run(const sdk::Step& step) override;

 private:
  void bind(const sdk::Step& step);
  void resolve_rows(const PhasePlan::RowList& list, std::vector<AttentionRow>& rows) const;

  PhasePlan plan_;
  CpuWeights* weights_;
  Kernels kernels_;
  ThreadTeam& team_;
  Workspace& workspace_;
  RunState state_;
  size_t input_counts_[MI_INPUT_COUNT] = {};
};

}  // namespace minfer::cpu
