// Speed of the kernels that are no matrix products, on one thread and in the shapes of a 0.5B model. Build target bench_ops; run it pinned
// to a CPU. GB/s counts what is read and written; FMA/cycle counts the products of attention, with the clock measured at the start.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "kernels/bench_clock.hpp"
#include "kernels/matmul.hpp"
#include "kernels/ops.hpp"

namespace minfer::cpu {
namespace {

constexpr int64_t kEmbd = 896, kFf = 4864;

std::vector<float> random_floats(size_t n) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(rng);
  return values;
}

// body() once per iteration, which reads and writes so many bytes.
template <class Body>
void add(const std::string& name, double bytes, Body body) {
  benchmark::RegisterBenchmark(name.c_str(), [bytes, body](benchmark::State& state) {
    for (auto _ : state) {
      body();
      benchmark::ClobberMemory();
    }
    state.counters["GB/s"] = benchmark::Counter(static_cast<double>(state.iterations()) * bytes * 1e-9, benchmark::Counter::kIsRate);
  });
}

void add_row_kernels(const std::string& isa, const OpKernels& ops, const MatmulKernels& matmul) {
  static const std::vector<float> a = random_floats(kFf), b = random_floats(kFf);
  static std::vector<float> y(kFf);
  static std::vector<Q8Block> q8(kFf / 32);
  add(isa + "/rms_norm_896", 3 * 4 * kEmbd, [&ops] { ops.rms_norm(a.data(), b.data(), y.data(), 1, kEmbd, 1e-6f); });
  add(isa + "/add_896", 3 * 4 * kEmbd, [&ops] { ops.add(a.data(), b.data(), y.data(), kEmbd); });
  add(isa + "/exp_4864", 2 * 4 * kFf, [&ops] { ops.exp(a.data(), y.data(), kFf); });
  add(isa + "/silu_mul_4864", 3 * 4 * kFf, [&ops] { ops.silu_mul(a.data(), b.data(), y.data(), kFf); });
  add(isa + "/rope_split_14x64", 2 * 4 * kEmbd, [&ops] { ops.rope_split(y.data(), 14, 64, 64, a.data(), b.data()); });
  add(isa + "/rope_interleaved_14x64", 2 * 4 * kEmbd, [&ops] { ops.rope_interleaved(y.data(), 14, 64, 64, a.data(), b.data()); });
  add(isa + "/quantize_4864", 4 * kFf + sizeof(Q8Block) * kFf / 32, [&matmul] {
    benchmark::DoNotOptimize(matmul.quantize({a.data(), kFf, kFf, 1, 0, 1, 0, kFf / 32, q8.data()}));
  });
}

// One KV head with its query heads: n_rows rows, the first of which sees `depth` positions before it. `n_layers` regions take turns, so
// that K and V come from memory where they are larger than the caches together.
struct AttentionCase {
  KvFormat format;
  int32_t n_rows;
  int32_t depth;
  int32_t n_heads = 7;
  int32_t head_dim = 64;
  int32_t n_layers = 1;
};

void attend(benchmark::State& state, const OpKernels& ops, const AttentionCase& shape) {
  static const double hz = clock_hz();
  const int32_t n_rows = shape.n_rows, n_heads = shape.n_heads, head_dim = shape.head_dim;
  const int32_t n_positions = shape.depth + n_rows, n_blocks = (n_positions + kKvBlock - 1) / kKvBlock;
  AttentionArgs args{};
  args.layout.format = shape.format;
  args.layout.n_kv_heads = 1;
  args.layout.head_dim = head_dim;
  const auto region_bytes = static_cast<size_t>(kv_offset(args.layout, n_blocks, 0));
  std::vector<unsigned char> k(region_bytes * static_cast<size_t>(shape.n_layers)), v(k.size());
  const std::vector<float> row = random_floats(head_dim);
  for (int32_t p = 0; p < n_blocks * kKvBlock * shape.n_layers; ++p)
    if (kv_store_row(args.layout, k.data(), v.data(), p, row.data(), row.data()) != KvStore::kOk) std::abort();
  std::vector<int32_t> blocks(static_cast<size_t>(n_blocks));
  for (int32_t i = 0; i < n_blocks; ++i) blocks[static_cast<size_t>(i)] = i;
  std::vector<AttentionRow> rows;
  for (int32_t r = 0; r < n_rows; ++r) rows.push_back({blocks.data(), shape.depth + r, 0});
  const std::vector<float> q = random_floats(static_cast<size_t>(int64_t{n_rows} * n_heads * head_dim));
  std::vector<float> out(q.size());
  args.n_heads = n_heads;
  args.scale = 0.125f;
  args.q = q.data();
  args.out = out.data();
  args.q_stride = args.out_stride = int64_t{n_heads} * head_dim;
  args.rows = rows.data();
  std::vector<unsigned char> scratch(attention_scratch_bytes(head_dim, n_rows, n_heads, n_positions) + 64);
  void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  size_t layer = 0;
  for (auto _ : state) {
    args.k_region = k.data() + layer * region_bytes;
    args.v_region = v.data() + layer * region_bytes;
    layer = (layer + 1) % static_cast<size_t>(shape.n_layers);
    ops.attend(args, {0, n_heads, 0, n_rows}, aligned);
    benchmark::ClobberMemory();
  }
  const double seen = n_rows * (shape.depth + (n_rows + 1) / 2.0);
  const auto rate = [&](double per_iteration) {
    return benchmark::Counter(static_cast<double>(state.iterations()) * per_iteration, benchmark::Counter::kIsRate);
  };
  state.counters["FMA/cycle"] = rate(2 * seen * int64_t{n_heads} * head_dim / hz);
  state.counters["GB/s"] = rate(2.0 * n_positions * static_cast<double>(kv_head_row_bytes(args.layout)) * 1e-9);
}

void add_benchmarks() {
  for (uint32_t i = 0; i < kIsaCount; ++i) {
    const Isa isa{i};
    if (!isa_supported(isa) || matmul_kernels(isa).isa != isa) continue;
    const OpKernels& ops = op_kernels(isa);
    const std::string name(isa_name(isa));
    add_row_kernels(name, ops, matmul_kernels(isa));
    for (const auto& [format, format_name] :
         {std::pair{KvFormat::kF16, "f16"}, std::pair{KvFormat::kF32, "f32"}, std::pair{KvFormat::kQ8_0, "q8_0"}}) {
      const auto add_attention = [&, format = format, format_name = format_name](AttentionCase shape) {
        shape.format = format;
        const std::string where = "rows:" + std::to_string(shape.n_rows) + "/depth:" + std::to_string(shape.depth);
        const std::string heads = "/heads:" + std::to_string(shape.n_heads) + "x" + std::to_string(shape.head_dim);
        const std::string layers = shape.n_layers > 1 ? "/layers:" + std::to_string(shape.n_layers) : "";
        benchmark::RegisterBenchmark((name + "/attention_" + format_name + "/" + where + heads + layers).c_str(),
                                     [&ops, shape](benchmark::State& state) { attend(state, ops, shape); })
            ->Unit(benchmark::kMicrosecond);
      };
      for (const int32_t depth : {0, 16, 64, 512, 2048, 8192}) add_attention({format, 1, depth});
      for (const auto& [heads, head_dim] : {std::pair{1, 128}, std::pair{2, 128}, std::pair{3, 64}, std::pair{4, 64}, std::pair{5, 128},
                                            std::pair{6, 128}, std::pair{8, 128}, std::pair{16, 64}})
        add_attention({format, 1, 2048, heads, head_dim});
      add_attention({format, 1, 2048, 7, 64, 256});
      for (const int32_t depth : {448, 8128}) add_attention({format, 64, depth});
    }
  }
}

}  // namespace
}  // namespace minfer::cpu

int main(int argc, char** argv) {
  minfer::cpu::add_benchmarks();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
