#include "sample/random.hpp"

#include <catch2/catch.hpp>

using minfer::sample::SplitMix64;

TEST_CASE("sample/random: gives the published SplitMix64 sequence", "[sample]") {
  SplitMix64 random(1234567);
  CHECK(random.next() == 6457827717110365317u);
  CHECK(random.next() == 3203168211198807973u);
  CHECK(random.next() == 9817491932198370423u);
  SplitMix64 zero(0);
  CHECK(zero.next() == 0xE220A8397B1DCDAFu);
}

TEST_CASE("sample/random: uniform numbers are the top 24 bits", "[sample]") {
  SplitMix64 random(42);
  CHECK(random.uniform() == 12441394 / 16777216.0f);
  CHECK(random.uniform() == 2682851 / 16777216.0f);
  CHECK(random.uniform() == 4674151 / 16777216.0f);
}
