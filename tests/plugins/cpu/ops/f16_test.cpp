// Half conversions: against the definition of the format, against exhaustive rounding cases and against the hardware.
#include "kernels/float16.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "bits.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace minfer::cpu;
using minfer::test::bits_of;
using minfer::test::from_bits;

// The value of a finite half by the format's formula.
double half_value(uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 0x3FF;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) float hardware_to_f32(uint16_t h) { return _cvtsh_ss(h); }
__attribute__((target("f16c"))) uint16_t hardware_to_f16(float x) {
  return static_cast<uint16_t>(_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT), 0));
}
#endif

}  // namespace

TEST_CASE("cpu/f16: every half converts exactly and comes back unchanged", "[cpu]") {
  int wrong_value = 0, wrong_trip = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto h = static_cast<uint16_t>(i);
    const float x = f16_to_f32(h);
    if ((h & 0x7C00) == 0x7C00) {
      const bool infinite = (h & 0x3FF) == 0;
      wrong_value += infinite ? !std::isinf(x) || std::signbit(x) != (h >> 15) : !std::isnan(x);
      wrong_trip += f32_to_f16(x) != (infinite ? h : static_cast<uint16_t>(h | 0x200));  // NaN comes back quiet
    } else {
      wrong_value += x != half_value(h) || std::signbit(x) != (h >> 15);
      wrong_trip += f32_to_f16(x) != h;
    }
  }
  CHECK(wrong_value == 0);
  CHECK(wrong_trip == 0);
}

TEST_CASE("cpu/f16: floats round to the nearest half, ties to even", "[cpu]") {
  int wrong = 0;
  for (uint16_t h = 0; h < 0x7BFF; ++h) {                                              // between h and h + 1, both signs
    const float middle = static_cast<float>((half_value(h) + half_value(h + 1)) / 2);  // exact
    const uint16_t even = h % 2 == 0 ? h : h + 1;
    const float below = std::nextafter(middle, 0.0f), above = std::nextafter(middle, 1e9f);
    for (const uint16_t sign : {0, 0x8000}) {
      const float s = sign != 0 ? -1.0f : 1.0f;
      wrong += f32_to_f16(s * middle) != (sign | even);
      wrong += f32_to_f16(s * below) != (sign | h);
      wrong += f32_to_f16(s * above) != (sign | (h + 1));
    }
  }
  CHECK(wrong == 0);
  CHECK(f32_to_f16(65504.0f) == 0x7BFF);
  CHECK(f32_to_f16(65519.996f) == 0x7BFF);
  CHECK(f32_to_f16(65520.0f) == 0x7C00);  // half way to 2^16 goes up
  CHECK(f32_to_f16(1e30f) == 0x7C00);
  CHECK(f32_to_f16(-1e30f) == 0xFC00);
  CHECK(f32_to_f16(1e-30f) == 0x0000);
  CHECK(f32_to_f16(-1e-30f) == 0x8000);
}

TEST_CASE("cpu/f16: the plain C++ conversions equal the hardware's", "[cpu]") {
#if defined(__x86_64__)
  minfer::test::avx2_or_skip();
  int wrong = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    wrong += bits_of(f16_to_f32(static_cast<uint16_t>(i))) != bits_of(hardware_to_f32(static_cast<uint16_t>(i)));
  }
  CHECK(wrong == 0);
  for (uint64_t pattern = 0; pattern < 0x100000000u; pattern += 1013) {
    const float x = from_bits(static_cast<uint32_t>(pattern));
    wrong += f32_to_f16(x) != hardware_to_f16(x);
  }
  CHECK(wrong == 0);
#else
  minfer::test::skip("no F16C on this machine");
#endif
}
