// Chooses the table of kernels. An instruction set without kernels of its own uses those of the next lower one.
#include "kernels/matmul.hpp"

#include "kernels/matmul_tables.hpp"

namespace minfer::cpu {

const MatmulKernels& matmul_kernels(Isa isa) {
  static_cast<void>(isa);
  return kMatmulBaseline;
}

}  // namespace minfer::cpu
