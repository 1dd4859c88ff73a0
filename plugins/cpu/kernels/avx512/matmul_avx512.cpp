// Matrix products for AVX-512 without VNNI: byte products in 16-bit sums, as on AVX2.
#include "kernels/avx512/matmul_avx512.hpp"

namespace minfer::cpu {

constexpr MatmulKernels kMatmulAvx512 = make_table<false>();

}  // namespace minfer::cpu
