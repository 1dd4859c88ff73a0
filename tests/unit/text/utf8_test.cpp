#include "base/utf8_decode.hpp"

#include <catch2/catch.hpp>

#include "support/support.hpp"
#include "text/utf8_stream.hpp"

using namespace minfer;
using test::from_hex;

TEST_CASE("text/utf8: well-formed characters are read, every other byte is a character of its own", "[text]") {
  const auto all = [](const std::string& bytes) {
    std::vector<uint32_t> code_points;
    for (size_t pos = 0; pos < bytes.size();) {
      const Utf8Char c = utf8_at(bytes, pos);
      code_points.push_back(c.code_point);
      pos += c.size;
    }
    return code_points;
  };
  using List = std::vector<uint32_t>;
  const uint32_t bad = kIllFormed;
  CHECK(all(from_hex("41c3a9e5a5bdf09f9880")) == List{0x41, 0xE9, 0x597D, 0x1F600});
  CHECK(all(from_hex("c280dfbfe0a080efbfbff0908080f48fbfbf")) == List{0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF});
  CHECK(all(from_hex("c080")) == List{bad, bad});         // overlong
  CHECK(all(from_hex("e09fbf")) == List{bad, bad, bad});  // overlong
  CHECK(all(from_hex("eda080")) == List{bad, bad, bad});  // surrogate
  CHECK(all(from_hex("ed9fbf")) == List{0xD7FF});
  CHECK(all(from_hex("f08fbfbf")) == List{bad, bad, bad, bad});  // overlong
  CHECK(all(from_hex("f4908080")) == List{bad, bad, bad, bad});  // above U+10FFFF
  CHECK(all(from_hex("e6ad41")) == List{bad, bad, 0x41});        // cut short
  CHECK(all(from_hex("ffbf")) == List{bad, bad});
}

TEST_CASE("text/utf8_stream: characters cut across tokens come out whole", "[text]") {
  const std::string text = from_hex("61c3a9e5a5bdf09f98807a");
  for (size_t step = 1; step <= text.size(); ++step) {
    Utf8Stream stream;
    std::string all;
    for (size_t pos = 0; pos < text.size(); pos += step) {
      std::string out;
      stream.push(std::string_view(text).substr(pos, step), out);
      CHECK(utf8_unfinished_tail(out) == 0);
      for (size_t i = 0; i < out.size();) {
        const Utf8Char c = utf8_at(out, i);
        CHECK(c.code_point != kIllFormed);
        i += c.size;
      }
      all += out;
    }
    CHECK(all == text);  // before flush: nothing is held back longer than needed
  }
}

TEST_CASE("text/utf8_stream: bytes that cannot become a character pass at once, an unfinished tail at the flush", "[text]") {
  Utf8Stream stream;
  std::string out = "x";
  stream.push(from_hex("ff80c0eda0"), out);  // none of these can begin a character that is still open
  CHECK(out == from_hex("78ff80c0eda0"));
  stream.push(from_hex("f09f98"), out);
  CHECK(out == from_hex("78ff80c0eda0"));
  stream.push("A", out);  // the open character can no longer be completed
  CHECK(out == from_hex("78ff80c0eda0f09f9841"));
  stream.push(from_hex("e5a5"), out);
  CHECK(out.size() == 10);
  stream.flush(out);
  CHECK(out == from_hex("78ff80c0eda0f09f9841e5a5"));
  stream.flush(out);
  CHECK(out.size() == 12);
}
