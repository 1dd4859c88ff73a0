// The table of matrix products for AVX-512 F, BW, VL and DQ, with or without VNNI. Same bits as baseline/matmul_baseline.cpp: the
// integer part of a block is exact in any order, the float part follows the definition lane by lane (a lane is a row).
// Included by the files of avx512/ only.
#pragma once

#include "kernels/avx512/float_avx512.hpp"
#include "kernels/avx512/quantised_avx512.hpp"
#include "kernels/avx512/quantize_avx512.hpp"
#include "kernels/matmul_tables.hpp"

namespace minfer::cpu {
namespace {

template <WeightType type, bool vnni>
void matmul_quantised(const MatmulArgs& args) {
  if (args.n_tokens == 1) return gemv<type, vnni, 1>(args);
  args.n_tokens <= kFewTokens ? gemv<type, vnni, 0>(args) : gemm<type, vnni>(args);
}

template <WeightType type>
void matmul_float(const MatmulArgs& args) {
  args.n_tokens == 1 ? gemv_float<type>(args) : gemm_float<type>(args);
}

template <bool vnni>
constexpr MatmulKernels make_table() {
  MatmulKernels table{};
  table.isa = vnni ? Isa::kAvx512Vnni : Isa::kAvx512;
  table.pack = pack_groups_avx2;
  table.quantize = quantize;
  const auto at = [&table](WeightType type) -> auto& { return table.matmul[static_cast<uint32_t>(type)]; };
  at(WeightType::kF32) = matmul_float<WeightType::kF32>;
  at(WeightType::kF16) = matmul_float<WeightType::kF16>;
  at(WeightType::kBF16) = matmul_float<WeightType::kBF16>;
  at(WeightType::kQ4_0) = matmul_quantised<WeightType::kQ4_0, vnni>;
  at(WeightType::kQ4_1) = matmul_quantised<WeightType::kQ4_1, vnni>;
  at(WeightType::kQ5_0) = matmul_quantised<WeightType::kQ5_0, vnni>;
  at(WeightType::kQ5_1) = matmul_quantised<WeightType::kQ5_1, vnni>;
  at(WeightType::kQ8_0) = matmul_quantised<WeightType::kQ8_0, vnni>;
  at(WeightType::kQ2_K) = matmul_quantised<WeightType::kQ2_K, vnni>;
  at(WeightType::kQ3_K) = matmul_quantised<WeightType::kQ3_K, vnni>;
  at(WeightType::kQ4_K) = matmul_quantised<WeightType::kQ4_K, vnni>;
  at(WeightType::kQ5_K) = matmul_quantised<WeightType::kQ5_K, vnni>;
  at(WeightType::kQ6_K) = matmul_quantised<WeightType::kQ6_K, vnni>;
  return table;
}

}  // namespace
}  // namespace minfer::cpu
