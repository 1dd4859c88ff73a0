// The tables that the files of each instruction set fill. Internal to the kernels.
#pragma once

#include "kernels/matmul.hpp"

namespace minfer::cpu {

extern const MatmulKernels kMatmulBaseline;
#if defined(__x86_64__)
extern const MatmulKernels kMatmulAvx2;
extern const MatmulKernels kMatmulAvx512;
extern const MatmulKernels kMatmulAvx512Vnni;
#endif

}  // namespace minfer::cpu
