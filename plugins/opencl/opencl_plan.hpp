// One prepared split: its launches, and the graph inputs that a run uploads and judges.
#pragma once

#include "opencl_context.hpp"

namespace minfer::opencl {

// What a kernel can find wrong, and in which layer; travels through the device as one number (common.cl: report_failure).
enum class FailureKind : int32_t { kActivation = 1, kKvNotFinite = 2, kKvBeyondFormat = 3 };
cl_int failure_code(FailureKind kind, uint32_t layer);
std::pair<FailureKind, uint32_t> split_failure_code(int32_t code);

struct PlanParts {
  struct Input {
    Mem mem;
    uint64_t count = 0;  // of int32; 0: not read
  };
  // Rows that keys are stored for or that attend: each needs its position below n_ctx, a sequence, and its blocks.
  struct RowCheck {
    uint32_t positions_input;
    uint32_t row_seq_input;
    uint32_t window;
    bool operator==(const RowCheck& o) const {
      return positions_input == o.positions_input && row_seq_input == o.row_seq_input && window == o.window;
    }
  };
  // Every entry of an input lies in [0, limit).
  struct RangeCheck {
    uint32_t input;
    uint64_t limit;
    const char* what;
  };
  std::vector<Launch> launches;
  Input inputs[MI_INPUT_COUNT];
  std::vector<RowCheck> row_checks;
  std::vector<RangeCheck> range_checks;
  uint64_t table_width = 0;  // blocks per sequence
  uint64_t n_seqs = 0;
  uint32_t n_ctx = 0;
  uint32_t n_kv_blocks = 0;
  std::vector<SharedMem> kept;  // memory that launches use and others may replace
};

class OpenclPlan final : public sdk::Plan {
 public:
  OpenclPlan(const Context& context, PlanParts parts) : context_(context), parts_(std::move(parts)) {}
  // Returns when everything is enqueued.
  void run(const sdk::Step& step) override;

 private:
  void check_rows(const sdk::Step& step, const PlanParts::RowCheck& check) const;

  const Context& context_;
  PlanParts parts_;
};

}  // namespace minfer::opencl
