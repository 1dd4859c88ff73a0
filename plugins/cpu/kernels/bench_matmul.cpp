// Speed of the matrix products on one thread, in the shapes of a 0.5B model. Build target bench_matmul; run it pinned to a CPU.
// Decode (tokens 1) goes through a matrix much larger than the caches; rates are per second of CPU time, so that other
// programs disturb little; MAC/cycle uses the clock measured at the start.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/bench_clock.hpp"
#include "kernels/matmul.hpp"

namespace minfer::cpu {
namespace {

uint8_t* huge_pages(size_t bytes) {
  constexpr size_t kHuge = size_t{2} << 20;
  void* p = std::aligned_alloc(kHuge, (bytes + kHuge - 1) / kHuge * kHuge);
  if (!p) std::abort();
#if defined(MADV_HUGEPAGE)
  madvise(p, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<uint8_t*>(p);
}

void run(benchmark::State& state, const MatmulKernels& kernels, WeightType type, size_t rows, size_t cols, size_t n_tokens, bool stream) {
  static const double hz = clock_hz();
  const size_t bytes = group_count(rows) * packed_group_bytes(type, cols);
  const size_t copies = stream && bytes < (size_t{96} << 20) ? (size_t{96} << 20) / bytes + 1 : 1;
  // Random blocks; every f16 scale is replaced by a small normal number.
  std::mt19937 rng(1);
  std::vector<uint8_t> row(gguf_row_bytes(type, cols) * 16);
  for (uint8_t& byte : row) byte = static_cast<uint8_t>(rng());
  const size_t unit = gguf_row_bytes(type, weight_block_cols(type));
  for (size_t at = 0; at < row.size(); at += unit) {
    const size_t d = type == WeightType::kQ6_K   ? 208
                     : type == WeightType::kQ3_K ? 108
                     : type == WeightType::kQ2_K ? 80
                     : type == WeightType::kF32  ? 2
                                                 : 0;
    row[at + d + 1] = 0x21;
    if (d + 4 <= unit && !weight_type_is_float(type)) row[at + d + 3] = 0x21;
  }
  uint8_t* weights = huge_pages(bytes * copies);
  const size_t group_bytes = packed_group_bytes(type, cols);
  pack_groups(type, row.data(), 16, cols, 0, 1, weights);
  for (size_t at = group_bytes; at < bytes * copies; at += group_bytes) std::memcpy(weights + at, weights, group_bytes);

  std::vector<float> x(n_tokens * cols), out(n_tokens * rows);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(rng);
  std::vector<Q8Block> q8(n_tokens * cols / 32);
  uint8_t* scratch = huge_pages(kMatmulScratchBytes);
  size_t copy = 0;
  for (auto _ : state) {
    if (!weight_type_is_float(type) && !kernels.quantize({x.data(), cols, cols, n_tokens, 0, n_tokens, 0, cols / 32, q8.data()}))
      std::abort();
    matmul(kernels, type,
           {weights + copy * bytes, rows, cols, 0, group_count(rows), n_tokens, q8.data(), x.data(), cols, nullptr, out.data(), rows,
            scratch});
    copy = (copy + 1) % copies;
  }
  const double iterations = static_cast<double>(state.iterations());
  const double macs = static_cast<double>(rows * cols * n_tokens);
  state.counters["GB/s"] = benchmark::Counter(iterations * static_cast<double>(bytes) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["MAC/cycle"] = benchmark::Counter(iterations * macs / hz, benchmark::Counter::kIsRate);
  state.counters["GHz"] = hz * 1e-9;
  std::free(weights);
  std::free(scratch);
}

struct Shape {
  const char* name;
  WeightType type;
  size_t rows, cols;
};

void add_benchmarks() {
  static const Shape shapes[] = {{"Q5_0_896x896", WeightType::kQ5_0, 896, 896},   {"Q5_0_4864x896", WeightType::kQ5_0, 4864, 896},
                                 {"Q4_K_896x4864", WeightType::kQ4_K, 896, 4864}, {"Q6_K_896x4864", WeightType::kQ6_K, 896, 4864},
                                 {"Q8_0_4864x896", WeightType::kQ8_0, 4864, 896}, {"Q8_0_151936x896", WeightType::kQ8_0, 151936, 896},
                                 {"Q4_1_1536x576", WeightType::kQ4_1, 1536, 576}, {"Q4_0_4864x896", WeightType::kQ4_0, 4864, 896},
                                 {"Q5_1_4864x896", WeightType::kQ5_1, 4864, 896}, {"Q2_K_896x4864", WeightType::kQ2_K, 896, 4864},
                                 {"Q3_K_896x4864", WeightType::kQ3_K, 896, 4864}, {"Q5_K_896x4864", WeightType::kQ5_K, 896, 4864},
                                 {"F16_896x896", WeightType::kF16, 896, 896},     {"BF16_896x896", WeightType::kBF16, 896, 896},
                                 {"F32_896x896", WeightType::kF32, 896, 896}};
  for (uint32_t i = 0; i < kIsaCount; ++i) {
    const Isa isa{i};
    if (!isa_supported(isa) || matmul_kernels(isa).isa != isa) continue;
    for (const Shape& s : shapes)
      for (size_t n_tokens : {1, 2, 4, 8, 16, 512}) {
        if (n_tokens > 16 && s.rows > 100000) continue;
        const std::string name = std::string(isa_name(isa)) + "/" + s.name + "/tokens:" + std::to_string(n_tokens);
        benchmark::RegisterBenchmark(name.c_str(), [isa, s, n_tokens](benchmark::State& state) {
          run(state, matmul_kernels(isa), s.type, s.rows, s.cols, n_tokens, n_tokens <= 16);
        })->Unit(benchmark::kMillisecond);
      }
  }
}

// File bytes packed per second.
void bench_pack(benchmark::State& state, WeightType type) {
  const size_t rows = 512, cols = 4864;
  std::vector<uint8_t> src(rows * gguf_row_bytes(type, cols), 0x5a);
  uint8_t* packed = huge_pages(group_count(rows) * packed_group_bytes(type, cols));
  const MatmulKernels& kernels = matmul_kernels(best_isa());
  for (auto _ : state) kernels.pack(type, src.data(), rows, cols, 0, group_count(rows), packed);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(src.size()));
  std::free(packed);
}
BENCHMARK_CAPTURE(bench_pack, Q5_0, WeightType::kQ5_0);
BENCHMARK_CAPTURE(bench_pack, Q8_0, WeightType::kQ8_0);
BENCHMARK_CAPTURE(bench_pack, Q4_K, WeightType::kQ4_K);
BENCHMARK_CAPTURE(bench_pack, Q6_K, WeightType::kQ6_K);
BENCHMARK_CAPTURE(bench_pack, Q4_1, WeightType::kQ4_1);
BENCHMARK_CAPTURE(bench_pack, F16, WeightType::kF16);

}  // namespace
}  // namespace minfer::cpu

int main(int argc, char** argv) {
  minfer::cpu::add_benchmarks();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
