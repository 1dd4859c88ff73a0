// Row and element-wise operations: bits against the contract restated here, values against double, AVX2 against baseline.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "bits.hpp"
#include "kernels/math.hpp"

namespace {

using namespace minfer::cpu;
using namespace minfer::test;

// The contract of OpKernels::rms_norm, written out.
std::vector<float> model_rms_norm(const std::vector<float>& x, const std::vector<float>& weight, float eps) {
  float lane[16] = {};
  for (size_t i = 0; i < x.size(); ++i) lane[i % 16] = std::fma(x[i], x[i], lane[i % 16]);
  float e[8], f[4];
  for (int i = 0; i < 8; ++i) e[i] = lane[i] + lane[i + 8];
  for (int i = 0; i < 4; ++i) f[i] = e[i] + e[i + 4];
  const float sum = (f[0] + f[2]) + (f[1] + f[3]);
  const float factor = 1.0f / std::sqrt(sum / static_cast<float>(x.size()) + eps);
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const float scaled = x[i] * factor;
    y[i] = scaled * weight[i];
  }
  return y;
}

// Values that reach every branch of exp and its neighbours.
std::vector<float> hard_values() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,    -0.0f,   infinity, -infinity, std::numeric_limits<float>::quiet_NaN(),
                               88.7f,   88.8f,   89.0f,    -87.3f,    -87.4f,
                               -103.0f, -103.9f, -104.0f,  1e-40f,    -1e-40f,
                               3e38f,   -3e38f};
  for (int i = -1100; i <= 1100; ++i) values.push_back(static_cast<float>(i) * 0.0943f);
  return values;
}

}  // namespace

TEST_CASE("cpu/ops: rms_norm sums in 16 lanes and halves them", "[cpu]") {
  const OpKernels& kernels = op_kernels(Isa::kBaseline);
  for (const size_t n : {1u, 7u, 8u, 15u, 16u, 17u, 31u, 33u, 64u, 576u, 896u, 897u}) {
    const auto x = normal_values(n, 31, 3.0f), weight = normal_values(n, 32);
    std::vector<float> y(n);
    kernels.rms_norm(x.data(), weight.data(), y.data(), 1, static_cast<int64_t>(n), 1e-6f);
    CHECK(first_difference(y, model_rms_norm(x, weight, 1e-6f)) == -1);
    double sum = 0.0;
    for (const float value : x) sum += static_cast<double>(value) * value;
    const double factor = 1.0 / std::sqrt(sum / static_cast<double>(n) + 1e-6);
    for (size_t i = 0; i < n; ++i) CHECK(y[i] == Approx(x[i] * factor * weight[i]).epsilon(1e-5));
  }
}

TEST_CASE("cpu/ops: rms_norm takes rows one by one", "[cpu]") {
  const OpKernels& kernels = *all_tables().back();
  const size_t rows = 5, n = 37;
  const auto x = normal_values(rows * n, 33), weight = normal_values(n, 34);
  std::vector<float> y = x;  // in place
  kernels.rms_norm(y.data(), weight.data(), y.data(), rows, n, 1e-5f);
  for (size_t r = 0; r < rows; ++r) {
    const auto begin = static_cast<std::ptrdiff_t>(r * n), end = static_cast<std::ptrdiff_t>((r + 1) * n);
    const std::vector<float> expected = model_rms_norm({x.begin() + begin, x.begin() + end}, weight, 1e-5f);
    CHECK(first_difference({y.begin() + begin, y.begin() + end}, expected) == -1);
  }
}

TEST_CASE("cpu/ops: SiLU and its product have the values of the formula", "[cpu]") {
  const OpKernels& kernels = op_kernels(Isa::kBaseline);
  const auto gate = normal_values(2000, 35, 8.0f), up = normal_values(2000, 36);
  std::vector<float> silu(2000), product(2000);
  kernels.silu(gate.data(), silu.data(), 2000);
  kernels.silu_mul(gate.data(), up.data(), product.data(), 2000);
  for (size_t i = 0; i < gate.size(); ++i) {
    const double exact = gate[i] / (1.0 + std::exp(-static_cast<double>(gate[i])));
    CHECK(silu[i] == Approx(exact).epsilon(3e-7));
    CHECK(bits_of(product[i]) == bits_of(silu[i] * up[i]));  // fused or not, the same bits
  }
  const float ends[3] = {-1000.0f, 1000.0f, 0.0f};
  float y[3];
  kernels.silu(ends, y, 3);
  CHECK(y[0] == 0.0f);
  CHECK(y[1] == 1000.0f);
  CHECK(y[2] == 0.0f);
}

TEST_CASE("cpu/ops: add, mul and scale", "[cpu]") {
  for (const OpKernels* table : all_tables()) {
    const OpKernels& kernels = *table;
    const float a[3] = {1.5f, -2.0f, 8.0f}, b[3] = {0.25f, 4.0f, -0.5f};
    float y[3];
    kernels.add(a, b, y, 3);
    CHECK((y[0] == 1.75f && y[1] == 2.0f && y[2] == 7.5f));
    kernels.mul(a, b, y, 3);
    CHECK((y[0] == 0.375f && y[1] == -8.0f && y[2] == -4.0f));
    kernels.scale(a, -2.0f, y, 3);
    CHECK((y[0] == -3.0f && y[1] == 4.0f && y[2] == -16.0f));
  }
}

static void equals_baseline(const OpKernels& wide) {
  const OpKernels& baseline = op_kernels(Isa::kBaseline);
  REQUIRE(std::string(baseline.isa) == "baseline");
  const auto compare = [](size_t n, auto run, auto run_other) {
    std::vector<float> a(n + 3, 42.0f), b(n + 3, 42.0f);  // three guards behind
    run(a.data());
    run_other(b.data());
    CHECK(first_difference(a, b) == -1);
    CHECK((b[n] == 42.0f && b[n + 1] == 42.0f && b[n + 2] == 42.0f));
  };
  for (size_t n = 1; n <= 70; ++n) {
    const auto m = static_cast<int64_t>(n);
    const auto x = normal_values(n, 41, 5.0f), z = normal_values(n, 42);
    compare(
        n, [&](float* y) { baseline.rms_norm(x.data(), z.data(), y, 1, m, 1e-6f); },
        [&](float* y) { wide.rms_norm(x.data(), z.data(), y, 1, m, 1e-6f); });
    compare(
        n, [&](float* y) { baseline.add(x.data(), z.data(), y, m); }, [&](float* y) { wide.add(x.data(), z.data(), y, m); });
    compare(
        n, [&](float* y) { baseline.mul(x.data(), z.data(), y, m); }, [&](float* y) { wide.mul(x.data(), z.data(), y, m); });
    compare(
        n, [&](float* y) { baseline.scale(x.data(), 0.3f, y, m); }, [&](float* y) { wide.scale(x.data(), 0.3f, y, m); });
    compare(
        n, [&](float* y) { baseline.exp(x.data(), y, m); }, [&](float* y) { wide.exp(x.data(), y, m); });
    compare(
        n, [&](float* y) { baseline.silu(x.data(), y, m); }, [&](float* y) { wide.silu(x.data(), y, m); });
    compare(
        n, [&](float* y) { baseline.silu_mul(x.data(), z.data(), y, m); }, [&](float* y) { wide.silu_mul(x.data(), z.data(), y, m); });
  }
  const auto hard = hard_values();
  const auto m = static_cast<int64_t>(hard.size());
  compare(
      hard.size(), [&](float* y) { baseline.exp(hard.data(), y, m); }, [&](float* y) { wide.exp(hard.data(), y, m); });
  compare(
      hard.size(), [&](float* y) { baseline.silu(hard.data(), y, m); }, [&](float* y) { wide.silu(hard.data(), y, m); });
}
TEST_CASE("cpu/ops: AVX2 gives the bits of baseline at every size", "[cpu]") { equals_baseline(named(avx2_or_skip(), "avx2")); }
TEST_CASE("cpu/ops: avx512 gives the bits of baseline at every size", "[cpu]") { equals_baseline(named(avx512_or_skip(), "avx512")); }
TEST_CASE("cpu/ops: emulated avx512 gives the bits of baseline at every size", "[cpu]") {
  equals_baseline(named(emulated_avx512_or_skip(), "avx512"));
}

// Every step-th float.
static void exp_equals_definition(const OpKernels& wide, uint64_t step) {
  std::vector<float> x, y(4096);
  int64_t wrong = 0, n = 0;
  for (uint64_t pattern = 0; pattern < 0x100000000u; pattern += step) {
    x.push_back(from_bits(static_cast<uint32_t>(pattern)));
    if (x.size() < y.size()) continue;
    wide.exp(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) wrong += !same_bits(y[i], exp_f32(x[i]));
    n += static_cast<int64_t>(x.size());
    x.clear();
  }
  CHECK(n > static_cast<int64_t>(0x100000000u / step) - 4096);
  CHECK(wrong == 0);
}
TEST_CASE("cpu/ops: AVX2 exp equals the definition over all floats", "[cpu]") {
  exp_equals_definition(named(avx2_or_skip(), "avx2"), 2003);
}
TEST_CASE("cpu/ops: avx512 exp equals the definition over all floats", "[cpu]") {
  exp_equals_definition(named(avx512_or_skip(), "avx512"), 2003);
}
TEST_CASE("cpu/ops: emulated avx512 exp equals the definition over all floats", "[cpu]") {
  exp_equals_definition(named(emulated_avx512_or_skip(), "avx512"), 40009);
}
