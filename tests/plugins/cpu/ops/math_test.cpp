// The project's elementary functions against libm in long double, over dense sweeps.
#include "kernels/math.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "bits.hpp"

namespace {

using namespace minfer::cpu;
using minfer::test::bits_of;
using minfer::test::from_bits;

// |got - exact| in units of the last place of a float result of this size.
double float_ulps(float got, long double exact) {
  const int exponent = exact < 0x1p-126L ? -149 : std::ilogb(exact) - 23;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) * std::ldexp(1.0L, -exponent));
}

}  // namespace

TEST_CASE("cpu/math: exp of a float stays within its documented error over all floats", "[cpu]") {
  double worst = 0.0, worst_subnormal = 0.0;
  int64_t n = 0;
  for (uint64_t pattern = 0; pattern < 0x100000000u; pattern += 1009) {
    const float x = from_bits(static_cast<uint32_t>(pattern));
    if (!(x > -103.0f && x < 88.7f)) continue;
    const long double exact = std::exp(static_cast<long double>(x));
    double& bound = exact < 0x1p-126L ? worst_subnormal : worst;
    bound = std::max(bound, float_ulps(exp_f32(x), exact));
    ++n;
  }
  // The interval that softmax and SiLU live in, densely.
  for (float x = -20.0f; x < 20.0f; x += 0x1p-16f) worst = std::max(worst, float_ulps(exp_f32(x), std::exp(static_cast<long double>(x))));
  INFO("worst " << worst << " ulp, subnormal results " << worst_subnormal << " ulp");
  CHECK(n > 2000000);
  CHECK(worst <= 1.05);
  CHECK(worst_subnormal <= 1.0);
}

TEST_CASE("cpu/math: exp of a float at its ends", "[cpu]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(bits_of(exp_f32(0.0f)) == bits_of(1.0f));
  CHECK(bits_of(exp_f32(-0.0f)) == bits_of(1.0f));
  CHECK(bits_of(exp_f32(-infinity)) == 0u);
  CHECK(bits_of(exp_f32(-104.0f)) == 0u);
  CHECK(bits_of(exp_f32(-1e30f)) == 0u);
  CHECK(exp_f32(-103.0f) > 0.0f);
  CHECK(exp_f32(infinity) == infinity);
  CHECK(exp_f32(89.0f) == infinity);
  CHECK(exp_f32(88.7f) < infinity);
  CHECK(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("cpu/math: double exp, log and pow agree with long double libm", "[cpu]") {
  long double worst_exp = 0, worst_log = 0, worst_pow = 0;
  for (int i = -70000; i <= 70000; ++i) {
    const double x = i * 0.00999;
    const long double exact = std::exp(static_cast<long double>(x));
    worst_exp = std::max(worst_exp, std::fabs(exp_f64(x) / exact - 1.0L));
  }
  for (int i = 1; i < 200000; ++i) {
    for (const double x : {i * 0.00001, i * 0.37, 1.0 + (i - 100000) * 1e-9, std::ldexp(1.0 + i * 1e-6, i % 2000 - 1000)}) {
      const long double exact = std::log(static_cast<long double>(x));
      if (exact != 0) worst_log = std::max(worst_log, std::fabs(log_f64(x) / exact - 1.0L));
    }
  }
  for (const double base : {10000.0, 500000.0, 1000000.0, 10.5, 1e8}) {
    for (int i = 0; i <= 512; ++i) {
      const double y = -i / 512.0;
      const long double exact = std::pow(static_cast<long double>(base), static_cast<long double>(y));
      const long double allowed = 1.0L + std::fabs(y * std::log(static_cast<long double>(base)));
      worst_pow = std::max(worst_pow, std::fabs(pow_f64(base, y) / exact - 1.0L) / allowed);
    }
  }
  INFO("exp " << static_cast<double>(worst_exp) << " log " << static_cast<double>(worst_log) << " pow " << static_cast<double>(worst_pow));
  CHECK(worst_exp < 1e-15L);
  CHECK(worst_log < 1e-15L);
  CHECK(worst_pow < 1e-15L);
  CHECK(log_f64(1.0) == 0.0);
  CHECK(exp_f64(0.0) == 1.0);
}

TEST_CASE("cpu/math: double sin and cos agree with long double libm up to 2^22", "[cpu]") {
  long double worst = 0;
  const auto probe = [&](double x) {
    double s, c;
    sin_cos_f64(x, &s, &c);
    const long double exact_s = std::sin(static_cast<long double>(x)), exact_c = std::cos(static_cast<long double>(x));
    // 1e-28 absolute: next to a zero the last piece of pi/2 is rounded.
    worst = std::max(worst, std::fabs(s - exact_s) / (std::fabs(exact_s) + 1e-13L));
    worst = std::max(worst, std::fabs(c - exact_c) / (std::fabs(exact_c) + 1e-13L));
  };
  for (int i = 0; i < 300000; ++i) {
    probe(i * 0.001);
    probe(i);             // whole radians, as positions are
    probe(i * 13.98101);  // up to 2^22
    probe(-i * 0.7);
    probe(i * 1.5707963267948966);  // near the zeros of cos and sin
  }
  probe(4194303.999);
  INFO("worst error " << static_cast<double>(worst));
  CHECK(worst < 1e-15L);
}
