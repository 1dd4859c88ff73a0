#include "cpu_plan.hpp"

#include <algorithm>

namespace minfer::cpu {

void Failure::throw_if_set() const {
  if (!taken_.load()) return;
  if (code_ == MI_CANCELLED) sdk::fail(code_, what_);
  if (layer_ == MI_LAYER_EMBEDDING) sdk::fail(code_, what_, " (row ", row_, ")");
  if (row_ < 0) sdk::fail(code_, what_, " (layer ", layer_, ")");
  sdk::fail(code_, what_, " (layer ", layer_, ", row ", row_, ")");
}

void Workspace::reserve(unsigned n_threads, size_t own_bytes, size_t shared0_bytes, size_t shared1_bytes) {
  const size_t stride = (own_bytes + 4095) / 4096 * 4096;
  if (stride > own_stride_) {
    PageMemory larger(stride * n_threads);  // may throw: plans made before keep what they have
    own_ = std::move(larger);
    own_stride_ = stride;
  }
  const size_t wanted[2] = {shared0_bytes, shared1_bytes};
  for (int slot = 0; slot < 2; ++slot) {
    if (wanted[slot] <= shared_[slot].size()) continue;
    PageMemory larger(wanted[slot]);
    shared_[slot] = std::move(larger);
  }
}

CpuPlan::CpuPlan(PhasePlan phases, CpuWeights* weights, const Kernels& kernels, ThreadTeam& team, Workspace& workspace)
    : plan_(std::move(phases)), weights_(weights), kernels_(kernels), team_(team), workspace_(workspace) {
  workspace_.reserve(team_.size(), kMatmulScratchBytes + plan_.own_scratch_bytes, plan_.shared_bytes[0], plan_.shared_bytes[1]);
  state_.rows.resize(plan_.row_lists.size());
  for (size_t i = 0; i < state_.rows.size(); ++i) state_.rows[i].resize(plan_.row_lists[i].n_rows);
}

void CpuPlan::bind(const sdk::Step& step) {
  for (uint32_t kind = 0; kind < MI_INPUT_COUNT; ++kind) {
    const mi_span span = step.input(kind);
    state_.inputs[kind] = static_cast<const int32_t*>(span.data);
    input_counts_[kind] = span.size_bytes / sizeof(int32_t);
    if ((plan_.inputs_read >> kind & 1) && !span.data) sdk::fail(MI_INVALID_ARGUMENT, "graph input ", kind, " is missing");
  }
  for (size_t i = 0; i < plan_.row_lists.size(); ++i) resolve_rows(plan_.row_lists[i], state_.rows[i]);
}

// The second of three gates against positions beyond the context: what would be stored or read outside is refused here.
void CpuPlan::resolve_rows(const PhasePlan::RowList& list, std::vector<AttentionRow>& rows) const {
  const int32_t* positions = state_.inputs[list.positions_input];
  const int32_t* row_seq = state_.inputs[list.row_seq_input];
  const int32_t* table = state_.inputs[MI_INPUT_BLOCK_TABLE];
  if (input_counts_[list.positions_input] != list.n_rows || input_counts_[list.row_seq_input] != list.n_rows ||
      input_counts_[MI_INPUT_BLOCK_TABLE] != plan_.block_table_width * plan_.n_seqs)
    sdk::fail(MI_INVALID_ARGUMENT, "graph inputs do not have the sizes that the plan was made for");
  for (size_t i = 0; i < list.n_rows; ++i) {
    AttentionRow& row = rows[i];
    row = {};
    if (row_seq[i] < 0) continue;  // padding
    const int32_t position = positions[i];
    if (position < 0 || static_cast<uint32_t>(position) >= plan_.n_ctx)
      sdk::fail(MI_INVALID_ARGUMENT, "row ", i, ": position ", position, " is outside the context of ", plan_.n_ctx);
    if (static_cast<size_t>(row_seq[i]) >= plan_.n_seqs)
      sdk::fail(MI_INVALID_ARGUMENT, "row ", i, ": sequence ", row_seq[i], " does not exist");
    row.blocks = table + static_cast<size_t>(row_seq[i]) * plan_.block_table_width;
    row.position = position;
    row.first = list.window ? std::max(0, position + 1 - static_cast<int32_t>(list.window)) : 0;
    for (int32_t block = row.first / kKvBlock; block <= position / kKvBlock; ++block)
      if (row.blocks[block] < 0 || static_cast<uint32_t>(row.blocks[block]) >= plan_.n_kv_blocks)
        sdk::fail(MI_INVALID_ARGUMENT, "row ", i, ": no KV block holds position ", block * kKvBlock, " of sequence ", row_seq[i]);
  }
}

void CpuPlan::run(const sdk::Step& step) {
  bind(step);
  state_.failure.reset();
  for (const auto& phase : plan_.phases) phase->begin_run();
  team_.run([&](unsigned thread) {
    Worker worker{kernels_,     state_, state_.failure,         thread,
                  team_.size(), 0,      workspace_.own(thread), {workspace_.shared(0), workspace_.shared(1)}};
    for (uint32_t i = 0; i < plan_.phases.size(); ++i) {
      worker.phase = i;
      plan_.phases[i]->run(worker);
      if (!plan_.phases[i]->barrier_after) continue;
      if (thread == 0 && step.should_stop()) state_.failure.set(i, MI_CANCELLED, "stopped on request", 0, -1);
      if (thread == 0 && weights_) weights_->report_packed();
      if (i + 1 < plan_.phases.size()) team_.barrier();
      if (state_.failure.by(i)) return;
    }
  });
  if (weights_) weights_->report_packed();
  state_.failure.throw_if_set();
}

}  // namespace minfer::cpu
