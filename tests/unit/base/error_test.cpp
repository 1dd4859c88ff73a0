#include "base/error.hpp"

#include <catch2/catch.hpp>

#include "base/checked_math.hpp"

using namespace minfer;

namespace {
Result<int> half(int value) {
  if (value % 2) return invalid("{} is odd", value);
  return value / 2;
}
Result<int> quarter(int value) {
  MINFER_ASSIGN(const int first, half(value));
  MINFER_ASSIGN(const int second, half(first));
  return second;
}
}  // namespace

TEST_CASE("base/error: a message carries its values and its place", "[base]") {
  const Error error = invalid("layer {}: head_count {} is not divisible by {:.1f}", 3, size_t{7}, 2.0);
  CHECK(error.code == ErrorCode::kInvalidArgument);
  CHECK(error.in("model.gguf").text == "model.gguf: layer 3: head_count 7 is not divisible by 2.0");
}

TEST_CASE("base/error: MINFER_ASSIGN passes the value on and returns the first error", "[base]") {
  REQUIRE(quarter(12).ok());
  CHECK(*quarter(12) == 3);
  REQUIRE_FALSE(quarter(6).ok());
  CHECK(quarter(6).error().text == "3 is odd");
}

TEST_CASE("base/checked_math: overflow is reported, the last value that fits is not", "[base]") {
  CHECK(checked_mul(UINT64_MAX, 1) == UINT64_MAX);
  CHECK_FALSE(checked_mul(UINT64_MAX / 2 + 1, 2));
  CHECK_FALSE(checked_add(UINT64_MAX, 1));
  CHECK(checked_align_up(33, 32) == 64u);
  CHECK_FALSE(checked_align_up(UINT64_MAX - 3, 32));
}
