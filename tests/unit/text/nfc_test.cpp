// Expected values: UAX #15 (composition exclusions, Hangul, canonical ordering), written down by hand.
#include "text/nfc.hpp"

#include <catch2/catch.hpp>

#include "support/support.hpp"

using namespace minfer;
using test::from_hex;

namespace {
std::string nfc(const std::string& hex) {
  std::string out;
  append_nfc(from_hex(hex), out);
  return out;
}
}  // namespace

TEST_CASE("text/nfc: composes, orders marks and honours the exclusions", "[text]") {
  CHECK(nfc("65cc81") == from_hex("c3a9"));  // e + acute
  CHECK(nfc("4365cc81") == from_hex("43c3a9"));
  CHECK(nfc("61cc81cca3") == from_hex("e1baa1cc81"));      // marks reordered: dot below first, then the acute stays apart
  CHECK(nfc("e1848be185a1e186ab") == from_hex("ec9588"));  // Hangul jamo -> syllable
  CHECK(nfc("e284aa") == from_hex("4b"));                  // Kelvin sign
  CHECK(nfc("e0a598") == from_hex("e0a495e0a4bc"));        // U+0958 is excluded from composition
  CHECK(nfc("c3a9c2a0") == from_hex("c3a9c2a0"));
  CHECK(nfc("") == "");
  CHECK(nfc("cc81cc81") == from_hex("cc81cc81"));  // marks with nothing to stand on
}

TEST_CASE("text/nfc: bytes that are not UTF-8 stay and separate what stands around them", "[text]") {
  CHECK(nfc("65ffcc81") == from_hex("65ffcc81"));
  CHECK(nfc("ff65cc81ff") == from_hex("ffc3a9ff"));
  CHECK(nfc("65cc") == from_hex("65cc"));
  CHECK(nfc("00") == std::string(1, '\0'));
}

TEST_CASE("text/nfc: a long run of alternating marks is sorted, not bubbled", "[text]") {
  // The limit of this test is its time-out: exchanging neighbours would take about 10^10 steps here.
  constexpr size_t kPairs = 100'000;
  std::string text = "q", expected = "q", above;
  for (size_t i = 0; i < kPairs; ++i) {
    text += from_hex("cc81cca3");
    expected += from_hex("cca3");
    above += from_hex("cc81");
  }
  std::string out;
  append_nfc(text, out);
  expected += above;
  CHECK((out == expected));
}
