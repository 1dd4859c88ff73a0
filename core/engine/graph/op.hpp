// The operations of the graph IR and their attributes. The contract of each (inputs, shapes, what it reads) is written once,
// in minfer/abi/graph.h; the numbers here are the same, which core/plugin asserts.
#pragma once

#include <cstdint>
#include <string_view>

namespace minfer {

enum class Op : uint32_t {
  kGetRows = 1,
  kRmsNorm = 2,
  kMatMul = 3,
  kRope = 4,
  kKvStore = 5,
  kAttention = 6,
  kAdd = 7,
  kMul = 8,
  kSilu = 9,
  kView = 10,
  // Made by schedule/fuse only.
  kSiluMul = 32,
  kFusedQkv = 33,
  kFusedFfn = 34,
};

enum class RopeKind : uint32_t { kSplitHalves = 0, kInterleaved = 1 };

// One struct for all operations: each reads the fields its contract names, the rest stay 0.
struct OpAttrs {
  uint32_t n_head = 0;
  uint32_t n_head_kv = 0;
  uint32_t head_dim = 0;
  float eps = 0;
  RopeKind rope_kind = RopeKind::kSplitHalves;
  float rope_freq_base = 0;
  float rope_freq_scale = 0;
  float attn_scale = 0;
  uint32_t window = 0;       // positions; 0 = no window
  uint64_t view_offset = 0;  // elements

  friend bool operator==(const OpAttrs&, const OpAttrs&) = default;
};

// Fixed facts about an operation.
struct OpInfo {
  Op op;
  std::string_view name;
  uint32_t min_inputs;  // slots that must be given; optional ones follow or are kNoValue inside
  uint32_t max_inputs;
  uint32_t n_outputs;
  bool has_effect;         // writes the KV: never dead
  uint32_t in_place_mask;  // bit i: the output may share the memory of input i
  uint32_t optional_mask;  // bit i: input i may be kNoValue
};

// nullptr for a number that is no operation.
const OpInfo* find_op(uint32_t op);
const OpInfo& op_info(Op op);

}  // namespace minfer
