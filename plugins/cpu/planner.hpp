// Turns a run of nodes into phases: groups what one thread can do without waiting, keeps values that only feed products out of
// memory, and counts the barriers that are left.
#pragma once

#include <memory>
#include <vector>

#include "phase.hpp"
#include "row_phases.hpp"

namespace minfer::cpu {

// Makes and keeps the rotation tables of a device.
class RopeTables {
 public:
  RopeTable get(int64_t n_ctx, int64_t head_dim, const mi_op_attrs& attrs, const float* freq_factors);

 private:
  struct Key {
    int64_t head_dim;
    float freq_base, freq_scale;
    std::vector<float> freq_factors;  // their values: weights that were freed leave their address to others
    bool operator==(const Key& o) const {
      return head_dim == o.head_dim && freq_base == o.freq_base && freq_scale == o.freq_scale && freq_factors == o.freq_factors;
    }
  };
  struct Table {
    Key key;
    int64_t n_ctx;
    std::vector<float> cos, sin;
  };
  std::vector<std::unique_ptr<Table>> tables_;  // never shrinks: plans point into it
};

struct PhasePlan {
  std::vector<std::unique_ptr<Phase>> phases;
  size_t own_scratch_bytes = 0;  // per thread, behind kMatmulScratchBytes
  size_t shared_bytes[2] = {0, 0};
  uint32_t n_barriers = 0;        // inside a run; its end not counted
  uint32_t n_layer_barriers = 0;  // of these the ones behind nodes of a layer
  uint32_t n_layers = 0;
  // The batch rows that phases read, resolved before each run to RunState::rows.
  struct RowList {
    uint32_t positions_input;  // MI_INPUT_POSITIONS or MI_INPUT_OUT_POSITIONS
    uint32_t row_seq_input;
    uint32_t window;  // 0: everything before a row is seen
    size_t n_rows;
  };
  std::vector<RowList> row_lists;
  size_t block_table_width = 0;  // blocks per sequence
  size_t n_seqs = 0;
  uint32_t n_ctx = 0;
  uint32_t n_kv_blocks = 0;  // of the regions
  uint32_t inputs_read = 0;  // bit i: graph input i
};

PhasePlan make_phases(const sdk::GraphView& graph, const CpuWeights* weights, unsigned n_threads, RopeTables& rope_tables);

KvLayout kv_layout_of(const mi_kv_layout& layout);
bool kv_layout_known(const mi_kv_layout& layout);

// True where make_phases can handle the node.
bool node_supported(const sdk::GraphView& graph, const mi_node& node);

}  // namespace minfer::cpu
