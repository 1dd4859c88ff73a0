// Chooses the table of kernels. Compiled for the baseline.
#include "kernels/matmul.hpp"

#include "kernels/matmul_tables.hpp"

namespace minfer::cpu {

const MatmulKernels& matmul_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::kAvx512Vnni) return kMatmulAvx512Vnni;
  if (isa >= Isa::kAvx512) return kMatmulAvx512;
  if (isa >= Isa::kAvx2) return kMatmulAvx2;
#endif
  static_cast<void>(isa);
  return kMatmulBaseline;
}

}  // namespace minfer::cpu
