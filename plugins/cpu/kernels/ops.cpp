// Picks the table of an instruction set, and the sizes that all tables share. Compiled for the baseline.
#include "kernels/ops.hpp"

#include "kernels/attention_scratch.hpp"
#include "kernels/op_tables.hpp"

namespace minfer::cpu {

const OpKernels& op_kernels(Isa isa) noexcept {
#if defined(__x86_64__)
  if (isa >= Isa::kAvx512) return avx512::kOps;
  if (isa != Isa::kBaseline) return avx2::kOps;
#endif
  static_cast<void>(isa);
  return baseline::kOps;
}

size_t attention_scratch_bytes(int32_t head_dim, int32_t n_rows, int32_t n_heads, int32_t max_position) noexcept {
  const auto dim = static_cast<size_t>(head_dim);
  const size_t n_chunks = static_cast<size_t>(max_position) / kAttentionChunk + 1;
  const size_t parts = static_cast<size_t>(n_rows) * static_cast<size_t>(n_heads) * n_chunks;
  const size_t converted = 2 * size_t{kAttentionChunk} * dim;                    // K and V of a chunk
  const size_t slab = size_t{kAttentionSlab} * (dim + size_t{kAttentionChunk});  // q and scores
  return sizeof(float) * (converted + slab + parts * (dim + 2));                 // m, l and o per chunk
}

}  // namespace minfer::cpu
