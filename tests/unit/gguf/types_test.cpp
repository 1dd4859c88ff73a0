#include "gguf/types.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace minfer;
using namespace minfer::gguf;

TEST_CASE("gguf/types: block sizes are those of the published block structs", "[gguf]") {
  // Sums of the fields: f16 = 2 bytes.
  struct Expected {
    uint32_t id, elements, bytes;
    const char* name;
  };
  const Expected expected[] = {
      {0, 1, 4, "F32"},
      {1, 1, 2, "F16"},
      {30, 1, 2, "BF16"},
      {2, 32, 2 + 16, "Q4_0"},
      {3, 32, 2 + 2 + 16, "Q4_1"},
      {6, 32, 2 + 4 + 16, "Q5_0"},
      {7, 32, 2 + 2 + 4 + 16, "Q5_1"},
      {8, 32, 2 + 32, "Q8_0"},
      {9, 32, 2 + 2 + 32, "Q8_1"},
      {10, 256, 16 + 64 + 2 + 2, "Q2_K"},
      {11, 256, 32 + 64 + 12 + 2, "Q3_K"},
      {12, 256, 2 + 2 + 12 + 128, "Q4_K"},
      {13, 256, 2 + 2 + 12 + 32 + 128, "Q5_K"},
      {14, 256, 128 + 64 + 16 + 2, "Q6_K"},
      {15, 256, 4 + 256 + 16 * 2, "Q8_K"},
      {16, 256, 2 + 64, "IQ2_XXS"},
      {17, 256, 2 + 64 + 8, "IQ2_XS"},
      {18, 256, 2 + 96, "IQ3_XXS"},
      {19, 256, 2 + 32 + 16, "IQ1_S"},
      {20, 32, 2 + 16, "IQ4_NL"},
      {21, 256, 2 + 64 + 8 + 32 + 4, "IQ3_S"},
      {22, 256, 2 + 64 + 8 + 8, "IQ2_S"},
      {23, 256, 2 + 2 + 4 + 128, "IQ4_XS"},
      {29, 256, 32 + 16 + 8, "IQ1_M"},
      {34, 256, 48 + 4 + 2, "TQ1_0"},
      {35, 256, 64 + 2, "TQ2_0"},
      {39, 32, 1 + 16, "MXFP4"},
      {40, 64, 4 + 32, "NVFP4"},
      {41, 128, 2 + 16, "Q1_0"},
      {42, 64, 2 + 16, "Q2_0"},
  };
  for (const Expected& e : expected) {
    const TypeInfo* type = find_type(e.id);
    REQUIRE(type);
    INFO(e.name);
    CHECK(type->name == e.name);
    CHECK(type->block_size == e.elements);
    CHECK(type->block_bytes == e.bytes);
    CHECK_FALSE(type->retired());
  }
}

TEST_CASE("gguf/types: retired ids are known by name and unknown ids are not", "[gguf]") {
  for (const uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u}) {
    REQUIRE(find_type(id));
    CHECK(find_type(id)->retired());
  }
  CHECK(find_type(4)->name == "Q4_2");
  CHECK_FALSE(find_type(43));
  CHECK_FALSE(find_type(4242));
  CHECK_FALSE(find_type(UINT32_MAX));
}

TEST_CASE("gguf/types: tensor sizes are rows of whole blocks and never wrap", "[gguf]") {
  const auto bytes = [](TensorType type, std::vector<uint64_t> dims) { return tensor_bytes(type_info(type), dims); };
  CHECK(*bytes(TensorType::kQ4_K, {512, 3}) == 2 * 3 * 144);
  CHECK(*bytes(TensorType::kF32, {7}) == 28);
  CHECK(*bytes(TensorType::kQ8_0, {32, 2, 3, 4}) == 24 * 34);
  CHECK_THAT(bytes(TensorType::kQ4_K, {128, 2}).error().text, Catch::Contains("128") && Catch::Contains("256") && Catch::Contains("Q4_K"));
  CHECK_THAT(bytes(TensorType::kF32, {4, 0}).error().text, Catch::Contains("dim 1 is 0"));
  CHECK_FALSE(bytes(TensorType::kI8, {uint64_t{1} << 32, uint64_t{1} << 32}).ok());
  CHECK_FALSE(bytes(TensorType::kI8, {uint64_t{1} << 32, uint64_t{1} << 31}).ok());
  CHECK(*bytes(TensorType::kI8, {uint64_t{1} << 32, uint64_t{1} << 30}) == uint64_t{1} << 62);
  CHECK_FALSE(bytes(TensorType::kQ1_0, {uint64_t{1} << 32, uint64_t{1} << 31}).ok());  // 2^63 elements in fewer bytes
  CHECK_FALSE(bytes(TensorType::kF64, {uint64_t{1} << 60}).ok());                      // 2^63 bytes
  CHECK_FALSE(bytes(TensorType::kQ8_0, {32, (uint64_t{1} << 59) + 32}).ok());
}
