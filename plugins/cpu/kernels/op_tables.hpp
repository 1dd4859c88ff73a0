// What each instruction set's files give to ops.cpp: plain declarations, nothing that could be merged across them. The tables are
// constants, not functions that fill one: no code for a wider instruction set may run before it was chosen.
#pragma once

#include "kernels/ops.hpp"

namespace minfer::cpu {

namespace baseline {
extern const OpKernels kOps;
void attend(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept;
}  // namespace baseline

namespace avx2 {
extern const OpKernels kOps;
void attend(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept;
}  // namespace avx2

namespace avx512 {
extern const OpKernels kOps;
void attend(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept;
}  // namespace avx512

}  // namespace minfer::cpu
