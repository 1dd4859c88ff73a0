#include "base/utf8.hpp"

#include <catch2/catch.hpp>

#include "support/support.hpp"

using namespace minfer;
using minfer::test::from_hex;

TEST_CASE("base/utf8: accepts the first and last code point of every length", "[base]") {
  for (const char* hex : {"00", "7f", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf", "f0908080", "f48fbfbf"}) {
    INFO(hex);
    CHECK(is_valid_utf8(from_hex(hex)));
  }
  CHECK(is_valid_utf8(""));
}

TEST_CASE("base/utf8: refuses truncated and overlong and surrogate and too large sequences", "[base]") {
  for (const char* hex :
       {"80", "c3", "c328", "c080", "c1bf", "e6ad", "e09fbf", "eda080", "edbfbf", "f08fbfbf", "f4908080", "f5808080", "ff", "41e6ad41"}) {
    INFO(hex);
    CHECK_FALSE(is_valid_utf8(from_hex(hex)));
  }
}

TEST_CASE("base/utf8: quoted text is one line of valid UTF-8 and says how much was cut", "[base]") {
  CHECK(quote("plain é") == "'plain é'");
  CHECK(quote("a\nb\t\x01\x7f'\\") == "'a\\nb\\t\\x01\\x7f\\'\\\\'");
  CHECK(quote(from_hex("ff41e6ad")) == "'\\xffA\\xe6\\xad'");
  CHECK(quote("0123456789", 10) == "'0123456789'");
  CHECK(quote("0123456789a", 10) == "'0123456789'... (11 bytes)");
  CHECK(quote("aé", 2) == "'a'... (3 bytes)");  // no half character
}

TEST_CASE("base/utf8: a message with control characters and stray bytes becomes one line") {
  CHECK(one_line("plain 'text' \\ \xC3\xB6") == "plain 'text' \\ \xC3\xB6");
  CHECK(one_line("a\nb\r\tc\x1b[0m\x7f") == "a\\nb\\r\\tc\\x1b[0m\\x7f");
  CHECK(one_line("\xFF\xC3") == "\\xff\\xc3");
  CHECK(one_line("") == "");
  CHECK(one_line("\xC2\x9B\x33m \xC2\xA0") == "\\xc2\\x9b3m \xC2\xA0");  // U+009B begins a terminal's command as ESC [ does
  CHECK(quote("\xC2\x9F") == "'\\xc2\\x9f'");
}

TEST_CASE("base/utf8: a printable text keeps its lines and nothing else that a terminal obeys") {
  CHECK(printable("error: a\x1b[0m\n  tried b\r\n") == "error: a\\x1b[0m\n  tried b\\r\n");
  CHECK(printable("one line") == "one line");
  CHECK(printable("") == "");
}
