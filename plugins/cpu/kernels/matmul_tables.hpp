// The tables that the files of each instruction set fill. Internal to the kernels.
#pragma once

#include "kernels/matmul.hpp"

namespace minfer::cpu {

extern const MatmulKernels kMatmulBaseline;
#if defined(__x86_64__)
extern const MatmulKernels kMatmulAvx2;
extern const MatmulKernels kMatmulAvx512;
extern const MatmulKernels kMatmulAvx512Vnni;
// pack_groups for a CPU with AVX2; those with AVX-512 have it too.
void pack_groups_avx2(WeightType type, const void* src, size_t rows, size_t cols, size_t group_begin, size_t group_end, void* packed);
#endif

}  // namespace minfer::cpu
