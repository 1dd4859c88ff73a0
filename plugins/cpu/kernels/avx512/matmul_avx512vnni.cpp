// Matrix products for AVX-512 with VNNI.
#include "kernels/avx512/matmul_avx512.hpp"

namespace minfer::cpu {

constexpr MatmulKernels kMatmulAvx512Vnni = make_table<true>();

}  // namespace minfer::cpu
