// Packing is lossless: rows read back from the packed form equal the reference's dequantisation bit for bit.
#include "kernels/weight_layout.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/matmul.hpp"
#include "matmul_model.hpp"
#include "support/support.hpp"

namespace minfer::cpu {
namespace {

TEST_CASE("cpu/weights: dequantisation equals the reference bit for bit, packed and as in the file") {
  const auto entries = nlohmann::json::parse(test::read_file(test::data_dir() / "dequant.json"));
  REQUIRE(entries.size() == model::all_types().size());
  for (const auto& entry : entries) {
    const std::string name = entry["type"];
    INFO(name);
    WeightType type{};
    for (const model::TypeInfo& t : model::all_types())
      if (t.name == name) type = t.type;
    REQUIRE(model::info(type).name == name);
    const size_t cols = entry["cols"];
    std::string raw;
    for (const std::string row : entry["raw_hex"]) raw += test::from_hex(row);
    const size_t rows = entry["raw_hex"].size();
    REQUIRE(raw.size() == rows * gguf_row_bytes(type, cols));
    // The matrix twice: rows in the first and at the end of a second group.
    std::string matrix;
    while (matrix.size() < 17 * gguf_row_bytes(type, cols)) matrix += raw;
    const size_t n_rows = matrix.size() / gguf_row_bytes(type, cols);
    std::vector<uint8_t> packed(group_count(n_rows) * packed_group_bytes(type, cols));
    pack_groups(type, matrix.data(), n_rows, cols, 0, group_count(n_rows), packed.data());
    for (size_t row = 0; row < n_rows; ++row) {
      const std::string expected = test::from_hex(entry["f32_hex"][row % rows].get<std::string>());
      REQUIRE(expected.size() == cols * 4);
      std::vector<float> from_file(cols), from_packed(cols);
      dequantize_row_gguf(type, matrix.data() + row * gguf_row_bytes(type, cols), cols, from_file.data());
      dequantize_row(type, packed.data(), cols, row, from_packed.data());
      CHECK(std::memcmp(from_file.data(), expected.data(), expected.size()) == 0);
      CHECK(std::memcmp(from_packed.data(), expected.data(), expected.size()) == 0);
    }
  }
}

TEST_CASE("cpu/weights: a packed row reads back what the file row says for random blocks of every type") {
  std::mt19937 rng(3);
  for (const model::TypeInfo& t : model::all_types())
    for (size_t n : {1u, 2u, 3u, 5u}) {
      const size_t cols = t.cols == 1 ? 7 * n : t.cols * n, rows = 20;
      const std::vector<uint8_t> weights = model::random_weights(t.type, rows, cols, model::Fill::kRandom, rng);
      REQUIRE(weights.size() == rows * gguf_row_bytes(t.type, cols));
      REQUIRE(packed_group_bytes(t.type, cols) % 64 == 0);
      std::vector<uint8_t> packed(2 * packed_group_bytes(t.type, cols) + 64, 0xa5);
      pack_groups(t.type, weights.data(), rows, cols, 1, 2, packed.data());
      pack_groups(t.type, weights.data(), rows, cols, 0, 1, packed.data());
      size_t wrong = 0;
      for (size_t row = 0; row < rows; ++row) {
        std::vector<float> a(cols), b(cols);
        dequantize_row_gguf(t.type, &weights[row * gguf_row_bytes(t.type, cols)], cols, a.data());
        dequantize_row(t.type, packed.data(), cols, row, b.data());
        wrong += std::memcmp(a.data(), b.data(), cols * 4) != 0;
      }
      INFO(t.name << " cols " << cols);
      CHECK(wrong == 0);
      for (size_t i = 2 * packed_group_bytes(t.type, cols); i < packed.size(); ++i) wrong += packed[i] != 0xa5;
      CHECK(wrong == 0);
    }
}

TEST_CASE("cpu/weights: packing with avx2 writes the same bytes for every type") {
  if (!isa_supported(Isa::kAvx2)) test::skip("this CPU has no AVX2");
  const MatmulKernels& kernels = matmul_kernels(Isa::kAvx2);
  REQUIRE(kernels.pack != matmul_kernels(Isa::kBaseline).pack);
  std::mt19937 rng(5);
  for (const model::TypeInfo& t : model::all_types())
    for (size_t n : {1u, 2u, 5u}) {
      const size_t cols = t.cols == 1 ? 7 * n : t.cols * n, rows = 37;  // two whole groups and five rows
      std::vector<uint8_t> weights(rows * gguf_row_bytes(t.type, cols));
      for (uint8_t& byte : weights) byte = static_cast<uint8_t>(rng());
      std::vector<uint8_t> expected(group_count(rows) * packed_group_bytes(t.type, cols), 0x5a), got(expected.size(), 0xa5);
      pack_groups(t.type, weights.data(), rows, cols, 0, 3, expected.data());
      kernels.pack(t.type, weights.data(), rows, cols, 1, 3, got.data());
      kernels.pack(t.type, weights.data(), rows, cols, 0, 1, got.data());
      INFO(t.name << " cols " << cols);
      CHECK(got == expected);
    }
}

TEST_CASE("cpu/weights: the packed form costs at most 6 percent more than the file") {
  for (const model::TypeInfo& t : model::all_types()) {
    INFO(t.name);
    CHECK(packed_group_bytes(t.type, 5120) <= 16 * gguf_row_bytes(t.type, 5120) * 106 / 100);
  }
}

TEST_CASE("cpu/weights: half precision values of every bit pattern convert exactly") {
  size_t wrong = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    if ((h >> 10 & 31) == 31) continue;
    const uint16_t bits = static_cast<uint16_t>(h);
    float got;
    dequantize_row_gguf(WeightType::kF16, &bits, 1, &got);
    const float expected = model::half_to_float(bits);
    wrong += std::memcmp(&got, &expected, 4) != 0;
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace minfer::cpu
