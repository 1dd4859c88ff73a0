// Matrix products of every instruction set against the independent model, bit for bit.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/matmul.hpp"
#include "matmul_model.hpp"
#include "support/support.hpp"

namespace minfer::cpu {

#if defined(MINFER_AVX512_BY_SIMDE)
extern const MatmulKernels kMatmulAvx512BySimde, kMatmulAvx512VnniBySimde;
#endif

namespace {

using model::Fill;

struct AlignedBytes {
  explicit AlignedBytes(size_t n) : storage(n + 64) {}
  uint8_t* data() { return storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64; }
  std::vector<uint8_t> storage;
};

uint32_t bits(float value) {
  uint32_t b;
  std::memcpy(&b, &value, 4);
  return b;
}

std::vector<float> random_floats(size_t n, std::mt19937& rng) {
  std::vector<float> values(n);
  std::normal_distribution<float> normal;
  for (float& v : values) v = normal(rng);
  return values;
}

enum class Activations { kRandom, kPlusMinusMax, kZeroBlocks };

struct Case {
  WeightType type;
  size_t rows, cols, n_tokens;
  Fill fill = Fill::kRandom;
  Activations activations = Activations::kRandom;
  size_t check_rows = 1000000;  // the model is slow: compare this many rows, from the end
};

// Number of output elements that differ from the model.
size_t mismatches(const MatmulKernels& kernels, const Case& c, uint32_t seed) {
  std::mt19937 rng(seed);
  const std::vector<uint8_t> weights = model::random_weights(c.type, c.rows, c.cols, c.fill, rng);
  const size_t x_stride = c.cols + 3, out_stride = c.rows + 5;
  std::vector<float> x = random_floats(c.n_tokens * x_stride, rng);
  if (c.activations == Activations::kPlusMinusMax)
    for (float& v : x) v = rng() % 4 ? 1.0f : -1.0f;
  if (c.activations == Activations::kZeroBlocks)
    for (size_t i = 0; i < x.size(); ++i)
      if (i / 32 % 2) x[i] = 0;
  const std::vector<float> bias = random_floats(c.rows, rng);

  const size_t n_groups = group_count(c.rows);
  AlignedBytes packed(n_groups * packed_group_bytes(c.type, c.cols)), scratch(kMatmulScratchBytes);
  std::memset(packed.data(), 0xa5, n_groups * packed_group_bytes(c.type, c.cols));
  for (size_t g = 0; g < n_groups; ++g) pack_groups(c.type, weights.data(), c.rows, c.cols, g, g + 1, packed.data());

  std::vector<Q8Block> q8(c.n_tokens * c.cols / 32 + 1);
  MatmulArgs args{};
  args.weights = packed.data();
  args.rows = c.rows;
  args.cols = c.cols;
  args.n_tokens = c.n_tokens;
  args.q8 = q8.data();
  args.x = x.data();
  args.x_stride = x_stride;
  args.bias = c.rows % 2 ? bias.data() : nullptr;
  std::vector<float> out(c.n_tokens * out_stride + 16, 1e30f);
  args.out = out.data();
  args.out_stride = out_stride;
  args.scratch = scratch.data();
  if (!model::is_float(c.type)) {
    QuantizeArgs quantize{x.data(), x_stride, c.cols, c.n_tokens, 0, c.n_tokens, 0, c.cols / 32, q8.data()};
    REQUIRE(kernels.quantize(quantize));
  }
  const size_t middle = n_groups / 3;  // two ranges, as two threads would do it
  for (auto [begin, end] : {std::pair{size_t{0}, middle}, std::pair{middle, n_groups}}) {
    args.group_begin = begin;
    args.group_end = end;
    matmul(kernels, c.type, args);
  }

  size_t wrong = 0;
  for (size_t token = 0; token < c.n_tokens; ++token) {
    const float* row_x = &x[token * x_stride];
    const std::vector<model::Q8> row_q8 = model::is_float(c.type) ? std::vector<model::Q8>() : model::quantize(row_x, c.cols);
    for (size_t row = c.rows > c.check_rows ? c.rows - c.check_rows : 0; row < c.rows; ++row) {
      float expected = model::dot(c.type, weights.data(), row, c.cols, row_x, row_q8);
      if (args.bias) expected += bias[row];
      wrong += bits(out[token * out_stride + row]) != bits(expected);
    }
    for (size_t row = c.rows; row < out_stride; ++row) wrong += out[token * out_stride + row] != 1e30f;  // nothing beside
  }
  for (size_t i = c.n_tokens * out_stride; i < out.size(); ++i) wrong += out[i] != 1e30f;
  return wrong;
}

const MatmulKernels& kernels_or_skip(Isa isa) {
  if (!isa_supported(isa)) test::skip("this CPU has no " + std::string(isa_name(isa)));
  const MatmulKernels& kernels = matmul_kernels(isa);
  REQUIRE(kernels.isa == isa);
  return kernels;
}

// The AVX-512 kernels as AVX2 code.
const MatmulKernels& simde_kernels_or_skip(Isa isa) {
#if defined(MINFER_AVX512_BY_SIMDE)
  if (!isa_supported(Isa::kAvx2)) test::skip("this CPU has no avx2, which the emulation of " + std::string(isa_name(isa)) + " needs");
  const MatmulKernels& kernels = isa == Isa::kAvx512 ? kMatmulAvx512BySimde : kMatmulAvx512VnniBySimde;
  REQUIRE(kernels.isa == isa);
  return kernels;
#else
  test::skip("built under a sanitizer or without SIMDe (libsimde-dev): " + std::string(isa_name(isa)) + " is not emulated");
#endif
}

void check_all(const MatmulKernels& kernels, const std::vector<Case>& cases) {
  uint32_t seed = 1;
  for (const Case& c : cases) {
    INFO(isa_name(kernels.isa) << " " << model::info(c.type).name << " rows " << c.rows << " cols " << c.cols << " tokens " << c.n_tokens
                               << " fill " << static_cast<int>(c.fill));
    CHECK(mismatches(kernels, c, seed++) == 0);
  }
}

// few: for slow kernels, without the numbers of tokens that come close to others.
std::vector<Case> shape_cases(bool few = false) {
  std::vector<Case> cases;
  std::mt19937 rng(7);
  for (const model::TypeInfo& t : model::all_types()) {
    const auto cols = [&t](size_t n) { return t.cols == 1 ? 32 * n - 5 : t.cols * n; };
    for (size_t rows = 1; rows <= 50; rows += 7) cases.push_back({t.type, rows, cols(3), 1});
    for (size_t n_tokens = 1; n_tokens <= 40; n_tokens += few && n_tokens > 13 ? 6 : 1)
      cases.push_back({t.type, 1 + rng() % 50, cols(1 + rng() % 3), n_tokens});
    // Several slabs, the last not full; ranges of 4 and 10 groups, which a kernel may take several at a time of.
    cases.push_back({t.type, 217, t.cols == 256 ? 1280u : 1184u, 1});
    cases.push_back({t.type, 48, t.cols == 256 ? 1280u : 1184u, 11});
    cases.push_back({t.type, few ? 150u : 200u, t.cols == 256 ? 768u : 608u, few ? 150u : 300u, Fill::kRandom, Activations::kRandom, 21});
  }
  return cases;
}

std::vector<Case> extreme_cases() {
  std::vector<Case> cases;
  for (const model::TypeInfo& t : model::all_types())
    for (size_t n_tokens : {1u, 2u, 7u}) {
      for (Fill fill : {Fill::kMax, Fill::kMin, Fill::kZeroScale, Fill::kSubnormalScale})
        for (Activations a : {Activations::kRandom, Activations::kPlusMinusMax})
          cases.push_back({t.type, 17, t.cols == 1 ? 64 : t.cols * 2, n_tokens, fill, a});
      cases.push_back({t.type, 17, t.cols == 1 ? 64 : t.cols * 3, n_tokens, Fill::kRandom, Activations::kZeroBlocks});
    }
  return cases;
}

TEST_CASE("cpu/matmul: baseline equals the model in all types and shapes") { check_all(kernels_or_skip(Isa::kBaseline), shape_cases()); }
TEST_CASE("cpu/matmul: baseline equals the model for extreme weights and activations") {
  check_all(kernels_or_skip(Isa::kBaseline), extreme_cases());
}
TEST_CASE("cpu/matmul: avx2 equals the model in all types and shapes") { check_all(kernels_or_skip(Isa::kAvx2), shape_cases()); }
TEST_CASE("cpu/matmul: avx2 equals the model for extreme weights and activations") {
  check_all(kernels_or_skip(Isa::kAvx2), extreme_cases());
}

TEST_CASE("cpu/matmul: avx512 equals the model in all types and shapes") { check_all(kernels_or_skip(Isa::kAvx512), shape_cases()); }
TEST_CASE("cpu/matmul: avx512 equals the model for extreme weights and activations") {
  check_all(kernels_or_skip(Isa::kAvx512), extreme_cases());
}
TEST_CASE("cpu/matmul: avx512vnni equals the model in all types and shapes") {
  check_all(kernels_or_skip(Isa::kAvx512Vnni), shape_cases());
}
TEST_CASE("cpu/matmul: avx512vnni equals the model for extreme weights and activations") {
  check_all(kernels_or_skip(Isa::kAvx512Vnni), extreme_cases());
}
TEST_CASE("cpu/matmul: emulated avx512 equals the model in all types and shapes") {
  check_all(simde_kernels_or_skip(Isa::kAvx512), shape_cases(true));
}
TEST_CASE("cpu/matmul: emulated avx512 equals the model for extreme weights and activations") {
  check_all(simde_kernels_or_skip(Isa::kAvx512), extreme_cases());
}
TEST_CASE("cpu/matmul: emulated avx512vnni equals the model in all types and shapes") {
  check_all(simde_kernels_or_skip(Isa::kAvx512Vnni), shape_cases(true));
}
TEST_CASE("cpu/matmul: emulated avx512vnni equals the model for extreme weights and activations") {
  check_all(simde_kernels_or_skip(Isa::kAvx512Vnni), extreme_cases());
}

// Every instruction set that runs here, natively or emulated.
std::vector<const MatmulKernels*> supported_kernels() {
  std::vector<const MatmulKernels*> all;
  for (uint32_t i = 0; i < kIsaCount; ++i)
    if (isa_supported(Isa{i})) all.push_back(&matmul_kernels(Isa{i}));
#if defined(MINFER_AVX512_BY_SIMDE)
  if (isa_supported(Isa::kAvx2)) all.insert(all.end(), {&kMatmulAvx512BySimde, &kMatmulAvx512VnniBySimde});
#endif
  return all;
}

TEST_CASE("cpu/quantize: equals the model and the instruction sets agree") {
  std::mt19937 rng(5);
  const size_t cols = 17 * 32, n_tokens = 9;  // the second slab has one block
  std::vector<float> x = random_floats(n_tokens * cols, rng);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= std::ldexp(1.0f, static_cast<int>(i / 32 % 250) - 125);
  for (size_t i = 0; i < 96; ++i) x[i] = i < 32 || (i >= 64 && i % 16 < 8) ? 3.0f : -3.0f;  // the largest sums that there are
  for (const MatmulKernels* kernels : supported_kernels()) {
    std::vector<Q8Block> q8(n_tokens * cols / 32);
    for (size_t token = 0; token < n_tokens; ++token)  // in parts, as threads would share it
      for (size_t begin : {0u, 9u}) {
        QuantizeArgs args{x.data(), cols, cols, n_tokens, token, token + 1, begin, begin ? 17u : 9u, q8.data()};
        REQUIRE(kernels->quantize(args));
      }
    size_t wrong = 0;
    for (size_t token = 0; token < n_tokens; ++token) {
      const std::vector<model::Q8> expected = model::quantize(&x[token * cols], cols);
      for (size_t b = 0; b < 17; ++b) {
        const Q8Block& got = q8[b < 16 ? token * 16 + b : n_tokens * 16 + token];
        wrong += bits(got.d) != bits(expected[b].d);
        int sums[4] = {};
        for (int k = 0; k < 32; ++k) {
          // Column k lies in the dword of its pair, in the half of its 16 columns.
          wrong += got.q[k % 16 / 2 * 4 + k / 16 * 2 + k % 2] != expected[b].q[k];
          sums[k / 8] += expected[b].q[k];
        }
        wrong += bits(got.scaled_sum) != bits(expected[b].d * static_cast<float>(sums[0] + sums[1] + sums[2] + sums[3]));
        wrong += got.start5[0] != -16 * (sums[0] + sums[1]) || got.start5[1] != -16 * (sums[2] + sums[3]);
        wrong += got.start6[0][0] != -32 * sums[0] || got.start6[0][1] != -32 * sums[2];
        wrong += got.start6[1][0] != -32 * sums[1] || got.start6[1][1] != -32 * sums[3];
      }
    }
    INFO(isa_name(kernels->isa));
    CHECK(wrong == 0);
  }
}

TEST_CASE("cpu/quantize: halves go to the even integer and tiny blocks to zero") {
  for (const MatmulKernels* kernels : supported_kernels()) {
    std::vector<float> x(32);
    for (int k = 0; k < 31; ++k) x[static_cast<size_t>(k)] = static_cast<float>(k) - 15.5f;
    x[31] = 127;  // d = 1
    Q8Block block;
    const QuantizeArgs args{x.data(), 32, 32, 1, 0, 1, 0, 1, &block};
    REQUIRE(kernels->quantize(args));
    CHECK(block.d == 1.0f);
    const int expected[8] = {-16, -14, -14, -12, -12, -10, -10, -8};
    for (int k = 0; k < 8; ++k) CHECK(block.q[k / 2 * 4 + k % 2] == expected[k]);

    x.assign(32, 0.0f);
    x[5] = -std::ldexp(1.0f, -101);
    REQUIRE(kernels->quantize(args));
    CHECK(block.d == 0.0f);
    CHECK(std::vector<int8_t>(block.q, block.q + 32) == std::vector<int8_t>(32));
    x[5] = -std::ldexp(1.0f, -100);
    REQUIRE(kernels->quantize(args));
    CHECK(block.d == std::ldexp(1.0f, -100) / 127.0f);
    CHECK(block.q[9] == -127);
  }
}

TEST_CASE("cpu/quantize: a value that is not finite is refused wherever it stands") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const MatmulKernels* kernels : supported_kernels())
    for (float bad : {inf, -inf, nan, -nan})
      for (size_t at = 0; at < 3 * 64; at += 5) {
        std::vector<float> x(3 * 64, 1.0f);
        std::vector<Q8Block> q8(6);
        const QuantizeArgs args{x.data(), 64, 64, 3, 0, 3, 0, 2, q8.data()};
        REQUIRE(kernels->quantize(args));
        x[at] = std::numeric_limits<float>::max();
        REQUIRE(kernels->quantize(args));
        x[at] = bad;
        CHECK_FALSE(kernels->quantize(args));
      }
}

}  // namespace
}  // namespace minfer::cpu
