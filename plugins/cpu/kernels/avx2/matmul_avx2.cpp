// Matrix products with AVX2, FMA and F16C. Same bits as baseline/matmul_baseline.cpp: the integer part of a block is exact
// in any order, the float part follows the definition lane by lane (a lane is a row).
#include "kernels/avx2/float_avx2.hpp"
#include "kernels/avx2/gemm_avx2.hpp"
#include "kernels/avx2/gemv_avx2.hpp"
#include "kernels/avx2/quantize_avx2.hpp"
#include "kernels/matmul_tables.hpp"

namespace minfer::cpu {
namespace {

template <WeightType type>
void matmul_quantised(const MatmulArgs& args) {
  if (args.n_tokens == 1) return gemv_one<type>(args);
  args.n_tokens <= kFewTokens ? gemv_few<type>(args) : gemm<type>(args);
}

template <WeightType type>
void matmul_float(const MatmulArgs& args) {
  args.n_tokens == 1 ? gemv_float<type>(args) : gemm_float<type>(args);
}

constexpr MatmulKernels make_table() {
  MatmulKernels table{};
  table.isa = Isa::kAvx2;
  table.pack = pack_groups_avx2;
  table.quantize = quantize;
  const auto at = [&table](WeightType type) -> auto& { return table.matmul[static_cast<uint32_t>(type)]; };
  at(WeightType::kF32) = matmul_float<WeightType::kF32>;
  at(WeightType::kF16) = matmul_float<WeightType::kF16>;
  at(WeightType::kBF16) = matmul_float<WeightType::kBF16>;
  at(WeightType::kQ4_0) = matmul_quantised<WeightType::kQ4_0>;
  at(WeightType::kQ4_1) = matmul_quantised<WeightType::kQ4_1>;
  at(WeightType::kQ5_0) = matmul_quantised<WeightType::kQ5_0>;
  at(WeightType::kQ5_1) = matmul_quantised<WeightType::kQ5_1>;
  at(WeightType::kQ8_0) = matmul_quantised<WeightType::kQ8_0>;
  at(WeightType::kQ2_K) = matmul_quantised<WeightType::kQ2_K>;
  at(WeightType::kQ3_K) = matmul_quantised<WeightType::kQ3_K>;
  at(WeightType::kQ4_K) = matmul_quantised<WeightType::kQ4_K>;
  at(WeightType::kQ5_K) = matmul_quantised<WeightType::kQ5_K>;
  at(WeightType::kQ6_K) = matmul_quantised<WeightType::kQ6_K>;
  return table;
}

}  // namespace

constexpr MatmulKernels kMatmulAvx2 = make_table();

}  // namespace minfer::cpu
