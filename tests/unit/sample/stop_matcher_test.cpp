#include "sample/stop_matcher.hpp"

#include <catch2/catch.hpp>

using minfer::sample::StopMatcher;

namespace {
using Words = std::vector<std::string>;

struct Outcome {
  std::string text;
  bool stopped;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '"' << outcome.text << '"' << (outcome.stopped ? " stopped" : "");
}

Outcome run(const Words& stops, const Words& pieces) {
  StopMatcher matcher(stops);
  std::string text;
  for (const std::string& piece : pieces) text += matcher.push(piece);
  text += matcher.flush();
  return {text, matcher.stopped()};
}

Words bytes_of(const std::string& text) {
  Words pieces;
  for (char byte : text) pieces.emplace_back(1, byte);
  return pieces;
}
}  // namespace

TEST_CASE("sample/stop_matcher: finds stops within and across tokens", "[sample]") {
  const Words tokens = {"DEF", "G", "HI", "J", "!"};
  CHECK(run({}, tokens) == Outcome{"DEFGHIJ!", false});
  CHECK(run({"DEFGHIJ"}, tokens) == Outcome{"", true});
  CHECK(run({"GHI"}, tokens) == Outcome{"DEF", true});
  CHECK(run({"EF", "J"}, tokens) == Outcome{"D", true});
  CHECK(run({"J", "FG"}, tokens) == Outcome{"DE", true});
  CHECK(run({"!?"}, tokens) == Outcome{"DEFGHIJ!", false});
  CHECK(run({"HIJ!"}, tokens) == Outcome{"DEFG", true});
}

TEST_CASE("sample/stop_matcher: holds back what may begin a stop and releases it when it cannot", "[sample]") {
  StopMatcher matcher({"GHIJ"});
  CHECK(matcher.push("DEFG") == "DEF");
  CHECK(matcher.push("H") == "");
  CHECK(matcher.push("G") == "GH");
  CHECK(matcher.push("HI") == "");
  CHECK_FALSE(matcher.stopped());
  CHECK(matcher.push("Jabc") == "");
  CHECK(matcher.stopped());
  CHECK(matcher.push("more") == "");
  CHECK(matcher.flush() == "");
}

TEST_CASE("sample/stop_matcher: a repeated beginning does not hide the stop", "[sample]") {
  CHECK(run({"aab"}, bytes_of("aaab")) == Outcome{"a", true});
  CHECK(run({"abac"}, bytes_of("ababac")) == Outcome{"ab", true});
  CHECK(run({"\n\n\n"}, {"x\n\n", "y\n", "\n", "\n"}) == Outcome{"x\n\ny", true});
}

TEST_CASE("sample/stop_matcher: the earliest start wins however the stream is cut", "[sample]") {
  for (const Words& stops : {Words{"bc", "abcX"}, Words{"abcX", "bc"}}) {
    for (const std::string text : {"1abcX2", "1abcY2", "1abc"}) {
      const Outcome expected{text == "1abcX2" ? "1" : "1a", true};
      CAPTURE(text);
      CHECK(run(stops, {text}) == expected);
      CHECK(run(stops, bytes_of(text)) == expected);
      for (size_t cut = 1; cut < text.size(); ++cut) CHECK(run(stops, {text.substr(0, cut), text.substr(cut)}) == expected);
    }
  }
}

TEST_CASE("sample/stop_matcher: works on the bytes of characters cut in two", "[sample]") {
  const std::string smile = "\xF0\x9F\x98\x8A", other = "\xF0\x9F\x98\x80";
  CHECK(run({smile}, {"a\xF0\x9F", "\x98\x8A", "b"}) == Outcome{"a", true});
  CHECK(run({smile}, {"a\xF0\x9F", "\x98\x80", "b"}) == Outcome{"a" + other + "b", false});
  CHECK(run({std::string("\0x", 2)}, {std::string("a\0", 2), "x"}) == Outcome{"a", true});
}

TEST_CASE("sample/stop_matcher: empty stops are ignored", "[sample]") {
  StopMatcher matcher({"", "END", ""});
  CHECK(matcher.push("text") == "text");
  CHECK(matcher.push("") == "");
  CHECK_FALSE(matcher.stopped());
}

TEST_CASE("sample/stop_matcher: flush releases what was held", "[sample]") {
  StopMatcher matcher({"END"});
  CHECK(matcher.push("the EN") == "the ");
  CHECK(matcher.flush() == "EN");
  CHECK(matcher.flush() == "");
  CHECK_FALSE(matcher.stopped());
}
