// Chooses the table of kernels. An instruction set without kernels of its own uses those of the next lower one.
#include "kernels/matmul.hpp"

#include "kernels/matmul_tables.hpp"

namespace minfer::cpu {

const MatmulKernels& matmul_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::kAvx2) return kMatmulAvx2;
#endif
  static_cast<void>(isa);
  return kMatmulBaseline;
}

}  // namespace minfer::cpu
