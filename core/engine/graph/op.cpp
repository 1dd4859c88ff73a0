#include "engine/graph/op.hpp"

#include <cassert>

namespace minfer {
namespace {

constexpr OpInfo kOps[] = {
    {Op::kGetRows, "get_rows", 2, 2, 1, false, 0, 0},    {Op::kRmsNorm, "rms_norm", 2, 2, 1, false, 0, 0},
    {Op::kMatMul, "matmul", 2, 3, 1, false, 0, 1u << 2}, {Op::kRope, "rope", 2, 3, 1, false, 1u << 0, 1u << 2},
    {Op::kKvStore, "kv_store", 5, 5, 0, true, 0, 0},     {Op::kAttention, "attention", 4, 4, 1, false, 0, 0},
    {Op::kAdd, "add", 2, 2, 1, false, 0b11, 0},          {Op::kMul, "mul", 2, 2, 1, false, 0b11, 0},
    {Op::kSilu, "silu", 1, 1, 1, false, 1u << 0, 0},     {Op::kView, "view", 1, 1, 1, false, 0, 0},
    {Op::kSiluMul, "silu_mul", 2, 2, 1, false, 0b11, 0}, {Op::kFusedQkv, "fused_qkv", 10, 11, 1, true, 0, 0b10001110000},
    {Op::kFusedFfn, "fused_ffn", 3, 3, 1, false, 0, 0},
};

}  // namespace

const OpInfo* find_op(uint32_t op) {
  for (const OpInfo& info : kOps)
    if (static_cast<uint32_t>(info.op) == op) return &info;
  return nullptr;
}

const OpInfo& op_info(Op op) {
  const OpInfo* info = find_op(static_cast<uint32_t>(op));
  assert(info);
  return *info;
}

}  // namespace minfer
