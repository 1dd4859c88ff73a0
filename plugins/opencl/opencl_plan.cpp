#include "opencl_plan.hpp"

#include <algorithm>

namespace minfer::opencl {
namespace {

// should_stop is polled after so many launches; twice as many are under way at most, so that a stop takes effect soon.
constexpr size_t kLaunchesAtOnce = 32;

constexpr int32_t kKindBits = 4;
constexpr int32_t kNoLayer = 0xffffff;  // the output

const int32_t* ints(const sdk::Step& step, uint32_t kind) { return static_cast<const int32_t*>(step.input(kind).data); }

}  // namespace

cl_int failure_code(FailureKind kind, uint32_t layer) {
  return static_cast<int32_t>(kind) | static_cast<int32_t>(std::min<uint32_t>(layer, kNoLayer)) << kKindBits;
}

std::pair<FailureKind, uint32_t> split_failure_code(int32_t code) {
  const int32_t layer = code >> kKindBits;
  return {static_cast<FailureKind>(code & ((1 << kKindBits) - 1)), layer == kNoLayer ? MI_LAYER_OUTPUT : static_cast<uint32_t>(layer)};
}

// A position beyond the context, or one that no block holds, is refused here: kernels do not look.
void OpenclPlan::check_rows(const sdk::Step& step, const PlanParts::RowCheck& check) const {
  const int32_t* positions = ints(step, check.positions_input);
  const int32_t* row_seq = ints(step, check.row_seq_input);
  const int32_t* table = ints(step, MI_INPUT_BLOCK_TABLE);
  for (uint64_t i = 0; i < parts_.inputs[check.positions_input].count; ++i) {
    if (row_seq[i] < 0) continue;  // padding
    const int32_t position = positions[i];
    if (position < 0 || static_cast<uint32_t>(position) >= parts_.n_ctx ||
        static_cast<uint64_t>(position) / MI_KV_BLOCK_POSITIONS >= parts_.table_width)
      sdk::fail(MI_INVALID_ARGUMENT, "row ", i, ": position ", position, " is outside the context of ", parts_.n_ctx);
    if (static_cast<uint64_t>(row_seq[i]) >= parts_.n_seqs)
      sdk::fail(MI_INVALID_ARGUMENT, "row ", i, ": sequence ", row_seq[i], " does not exist");
    const int32_t* blocks = table + static_cast<uint64_t>(row_seq[i]) * parts_.table_width;
    const int32_t first = check.window ? static_cast<int32_t>(std::max<int64_t>(0, int64_t{position} + 1 - check.window)) : 0;
    for (int32_t b = first / static_cast<int32_t>(MI_KV_BLOCK_POSITIONS); b <= position / static_cast<int32_t>(MI_KV_BLOCK_POSITIONS); ++b)
      if (blocks[b] < 0 || static_cast<uint32_t>(blocks[b]) >= parts_.n_kv_blocks)
        sdk::fail(MI_INVALID_ARGUMENT, "row ", i, ": no KV block holds position ", b * static_cast<int32_t>(MI_KV_BLOCK_POSITIONS),
                  " of sequence ", row_seq[i]);
  }
}

void OpenclPlan::run(const sdk::Step& step) {
  for (uint32_t kind = 0; kind < MI_INPUT_COUNT; ++kind) {
    const uint64_t count = parts_.inputs[kind].count;
    if (count == 0) continue;
    if (!step.input(kind).data) sdk::fail(MI_INVALID_ARGUMENT, "graph input ", kind, " is missing");
    if (step.input(kind).size_bytes != count * sizeof(int32_t))
      sdk::fail(MI_INVALID_ARGUMENT, "graph input ", kind, " has ", step.input(kind).size_bytes, " bytes, the plan was made for ",
                count * sizeof(int32_t));
  }
  for (const PlanParts::RangeCheck& check : parts_.range_checks)
    for (uint64_t i = 0; i < parts_.inputs[check.input].count; ++i)
      if (const int32_t value = ints(step, check.input)[i]; value < 0 || static_cast<uint64_t>(value) >= check.limit)
        sdk::fail(MI_INVALID_ARGUMENT, "row ", i, ": ", check.what, " ", value, " is outside ", check.limit);
  for (const PlanParts::RowCheck& check : parts_.row_checks) check_rows(step, check);
  if (step.should_stop()) sdk::fail(MI_CANCELLED, "stopped on request");

  // The spans stay until the run is done.
  for (uint32_t kind = 0; kind < MI_INPUT_COUNT; ++kind)
    if (const PlanParts::Input& input = parts_.inputs[kind]; input.count > 0)
      context_.enqueue_write(input.mem.get(), step.input(kind).data, input.count * sizeof(int32_t));
  Handle<cl_event> before;
  for (size_t i = 0; i < parts_.launches.size(); ++i) {
    context_.enqueue(parts_.launches[i]);
    if ((i + 1) % kLaunchesAtOnce != 0) continue;
    Handle<cl_event> now = context_.marker();
    context_.wait(before);
    before = std::move(now);
    if (!step.should_stop()) continue;
    context_.finish();
    sdk::fail(MI_CANCELLED, "stopped on request");
  }
  context_.flush();
}

}  // namespace minfer::opencl
