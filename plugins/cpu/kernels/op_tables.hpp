// What each instruction set's files give to the tables of ops.cpp: plain declarations, nothing that could be merged across them.
#pragma once

#include "kernels/ops.hpp"

namespace minfer::cpu {

namespace baseline {
void fill_ops(OpKernels* table) noexcept;
void attend(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept;
}  // namespace baseline

namespace avx2 {
void fill_ops(OpKernels* table) noexcept;
void attend(const AttentionArgs& args, const AttentionUnit& unit, void* scratch) noexcept;
}  // namespace avx2

}  // namespace minfer::cpu
