#include <catch2/catch.hpp>

#include "runtime/token_mirror.hpp"

using namespace minfer;

namespace {

TokenMirror mirror_of(const std::vector<std::string>& pieces) {
  TokenMirror mirror;
  for (size_t i = 0; i < pieces.size(); ++i) mirror.push(static_cast<int32_t>(i), pieces[i]);
  return mirror;
}

}  // namespace

TEST_CASE("token_mirror: tokens and bytes are cut together") {
  TokenMirror mirror = mirror_of({"", "ab", "c", "def"});
  CHECK(mirror.bytes() == "abcdef");
  CHECK(mirror.byte_end(1) == 0);
  CHECK(mirror.tokens_within(0) == 1);
  CHECK(mirror.tokens_within(2) == 2);
  CHECK(mirror.tokens_within(5) == 3);
  mirror.erase(1, 2);
  CHECK(mirror.bytes() == "def");
  CHECK(std::vector<int32_t>(mirror.tokens().begin(), mirror.tokens().end()) == std::vector<int32_t>{0, 3});
  CHECK(mirror.byte_end(2) == 3);
  mirror.truncate(1);
  CHECK(mirror.bytes().empty());
  CHECK(mirror.size() == 1);
}

TEST_CASE("token_mirror: a surplus is found between tokens only and as late as it can begin") {
  const TokenMirror mirror = mirror_of({"S", "[", "one", "]", "[", "two", "]"});
  uint32_t first = 0, count = 0;
  REQUIRE(mirror.find_surplus("S[two][a", 5, &first, &count));
  CHECK(first == 2);  // "one][" rather than "[one]": the first bracket may stay
  CHECK(count == 3);
  CHECK_FALSE(mirror.find_surplus("S[two][a", 4, &first, &count));   // no such stretch
  CHECK_FALSE(mirror.find_surplus("S[zwo][a", 5, &first, &count));   // what is left differs
  CHECK_FALSE(mirror.find_surplus("S[two][a", 50, &first, &count));  // more than there is
  const TokenMirror merged = mirror_of({"S[o", "ne][t", "wo]"});
  CHECK_FALSE(merged.find_surplus("S[two][a", 5, &first, &count));  // not a whole number of tokens
}
