// Expected values: correctly rounded, from 80-digit decimal arithmetic.
#include "sample/math.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "sample/random.hpp"

using namespace minfer;

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int64_t units_apart(double a, double b) { return std::llabs(std::bit_cast<int64_t>(a) - std::bit_cast<int64_t>(b)); }

struct Pair {
  double x, y;
};
}  // namespace

TEST_CASE("sample/math: exp is within one unit in the last place", "[sample]") {
  for (const auto [x, y] : {Pair{0x1p-60, 1.0},
                            {-0.75, 0x1.e3b40ebefcd7ep-2},
                            {1.0, 0x1.5bf0a8b145769p+1},
                            {0x1.62e42fefa39efp-2, 0x1.6a09e667f3bccp+0},
                            {-0.1, 0x1.cf46d99d52b3ap-1},
                            {10.25, 0x1.b9ea2aed2a0f1p+14},
                            {-37.5, 0x1.dd5c566301ec8p-55},
                            {700.125, 0x1.0c24ed83b8e53p+1010},
                            {-700.125, 0x1.e8cfc0420616bp-1011},
                            {-740.5, 0x0.0000000000033p-1022},
                            {0x1.62e42feba39efp+6, 0x1.fffffdffffff5p+127},
                            {-16.0, 0x1.e355bbaee85cbp-24}}) {
    CAPTURE(x);
    CHECK(units_apart(sample::exp(x), y) <= 1);
  }
  CHECK(sample::exp(0.0) == 1.0);
  CHECK(sample::exp(710.0) == kInf);
  CHECK(sample::exp(kInf) == kInf);
  CHECK(sample::exp(-746.0) == 0.0);
  CHECK(sample::exp(-kInf) == 0.0);
  CHECK(std::isnan(sample::exp(kNaN)));
}

TEST_CASE("sample/math: log is within one unit in the last place", "[sample]") {
  for (const auto [x, y] : {Pair{0.05, -0x1.7f7427b73e391p+1},
                            {0.25, -0x1.62e42fefa39efp+0},
                            {0.5, -0x1.62e42fefa39efp-1},
                            {0.9999999, -0x1.ad7f2b1049b9fp-24},
                            {1.0000001, 0x1.ad7f2847b6492p-24},
                            {2.0, 0x1.62e42fefa39efp-1},
                            {10.0, 0x1.26bb1bbb55516p+1},
                            {1e300, 0x1.5963447f87fb5p+9},
                            {5e-324, -0x1.74385446d71c3p+9},
                            {0x1.6a09e667f3bccp-1, -0x1.62e42fefa39f1p-2},
                            {0x1.6a09e667f3bcep-1, -0x1.62e42fefa39ebp-2},
                            {3.5, 0x1.40b512eb53d60p+0}}) {
    CAPTURE(x);
    CHECK(units_apart(sample::log(x), y) <= 1);
  }
  CHECK(sample::log(1.0) == 0.0);
  CHECK(sample::log(0.0) == -kInf);
  CHECK(sample::log(kInf) == kInf);
  CHECK(std::isnan(sample::log(-1.0)));
  CHECK(std::isnan(sample::log(kNaN)));
}

// Pinned bits: another compiler, CPU or flag (a fused multiply-add, say) that changes any of 20,000 results shows here.
TEST_CASE("sample/math: exp and log give the same bits on every machine", "[sample]") {
  sample::SplitMix64 random(7);
  uint64_t exp_hash = 0xCBF29CE484222325u, log_hash = exp_hash;
  const auto mix = [](uint64_t hash, double value) { return (hash ^ std::bit_cast<uint64_t>(value)) * 0x100000001B3u; };
  for (int i = 0; i < 10000; ++i) {
    const double u = random.uniform();
    exp_hash = mix(exp_hash, sample::exp(-60.0 * u));
    log_hash = mix(log_hash, sample::log(u + 0x1p-30));
  }
  CHECK(exp_hash == 0x1FAE8590CDD10609u);
  CHECK(log_hash == 0x0AD7E935C8C34E25u);
}
