// Typed reading: which spellings are accepted, and the whole text of each refusal.
#include "yaml/reader.hpp"

#include <catch2/catch.hpp>
#include <clocale>
#include <string>

using namespace minfer;
using yaml::Node;
using yaml::Reader;

namespace {

Node parsed(std::string_view text) {
  auto document = yaml::parse_yaml(text, "f.yaml");
  if (!document.ok()) FAIL(document.error().text);
  return document->root;
}

// What a read of the one value of "k: TEXT" says: the error text, or "" when it is accepted.
template <class Read>
std::string complaint(std::string_view value, Read read) {
  const Node root = parsed("k: " + std::string(value));
  const auto result = read(*root.find("k"));
  return result.ok() ? "" : result.error().text;
}
const auto integer = [](const Node& node) { return yaml::read_integer(node); };
const auto number = [](const Node& node) { return yaml::read_number(node); };
const auto boolean = [](const Node& node) { return yaml::read_boolean(node); };

}  // namespace

TEST_CASE("yaml/reader: reads typed values and leaves fallbacks for absent keys", "[yaml]") {
  const Node root = parsed("s: x y\nq: \"5\"\nb: true\nf: false\ni: -7\np: +8\nn: 2.5e1\nl: [a, \"b\"]\nc: two\n");
  Reader r(root);
  CHECK(r.string("s", "") == "x y");
  CHECK(r.string("q", "") == "5");
  CHECK(r.boolean("b", false));
  CHECK_FALSE(r.boolean("f", true));
  CHECK(r.integer("i", int32_t{0}, {-7, 7}) == -7);
  CHECK(r.integer("p", uint8_t{0}, {0, 8}) == 8);
  CHECK(r.number("n", 0.0f, {0, 25}) == 25.0f);
  CHECK(r.strings("l", {}) == std::vector<std::string>{"a", "b"});
  CHECK(r.choice("c", 0, {{"one", 1}, {"two", 2}}) == 2);
  CHECK(r.string("absent", "fallback") == "fallback");
  CHECK(r.integer("absent2", 3, {0, 1}) == 3);
  CHECK(r.node("absent3") == nullptr);
  CHECK(r.finish().ok());
}

TEST_CASE("yaml/reader: keeps the first failure and returns the fallback", "[yaml]") {
  const Node root = parsed("a: x\nb: y\nunknown: 1\n");
  Reader r(root);
  CHECK(r.integer("b", 4, {}) == 4);
  CHECK(r.integer("a", 5, {}) == 5);
  CHECK_FALSE(r.ok());
  CHECK(r.finish().error().text == "f.yaml:2:4: b: must be a whole number, found 'y'");
}

TEST_CASE("yaml/reader: refuses whole numbers in any other spelling", "[yaml]") {
  CHECK(complaint("0", integer).empty());
  CHECK(complaint("-0", integer).empty());
  CHECK(complaint("9223372036854775807", integer).empty());
  CHECK(complaint("-9223372036854775808", integer).empty());
  CHECK(complaint("9223372036854775808", integer) == "f.yaml:1:4: k: '9223372036854775808' does not fit in 64 bits");
  CHECK(complaint("010", integer) == "f.yaml:1:4: k: a number may not begin with 0, found '010'");
  CHECK(complaint("-00", integer) == "f.yaml:1:4: k: a number may not begin with 0, found '-00'");
  CHECK(complaint("\"5\"", integer) ==
        "f.yaml:1:4: k: must be a whole number, found '5' in quotes (quoted values are text; remove the quotes)");
  for (const char* bad : {"0x10", "0o7", "1_000", "1e3", "1.0", "5k", "+", "-5-", "5x", "++5", "+-5", "''", "true", "1,000"})
    CHECK(complaint(bad, integer).find("f.yaml:1:4: k: must be a whole number, found ") == 0);
  CHECK(complaint("[1]", integer) == "f.yaml:1:4: k: must be a whole number, found a list");
  CHECK(complaint("{a: 1}", integer) == "f.yaml:1:4: k: must be a whole number, found a mapping");
}

TEST_CASE("yaml/reader: checks both ends of an integer range", "[yaml]") {
  const auto between = [](const Node& node) { return yaml::read_integer(node, {-1, 10}); };
  CHECK(complaint("-1", between).empty());
  CHECK(complaint("10", between).empty());
  CHECK(complaint("-2", between) == "f.yaml:1:4: k: must be between -1 and 10, found -2");
  CHECK(complaint("11", between) == "f.yaml:1:4: k: must be between -1 and 10, found 11");
  const auto at_least = [](const Node& node) { return yaml::read_integer(node, {.min = 0}); };
  CHECK(complaint("-1", at_least) == "f.yaml:1:4: k: must be at least 0, found -1");
  const auto at_most = [](const Node& node) { return yaml::read_integer(node, {.max = 9}); };
  CHECK(complaint("10", at_most) == "f.yaml:1:4: k: must be at most 9, found 10");
}

TEST_CASE("yaml/reader: refuses numbers that are not finite decimals", "[yaml]") {
  for (const char* good : {"0", "0.8", ".5", "1.", "-2", "+1.5", "1e-3", "2E+2"}) CHECK(complaint(good, number).empty());
  for (const char* bad :
       {".inf", "-.inf", ".nan", "nan", "inf", "0x1p3", "1,5", "1.2.3", "e5", ".", "1e", "1e+", "\"0.8\"", "true", "[0.8]"})
    CHECK(complaint(bad, number).find("f.yaml:1:4: k: must be a number, found ") == 0);
  CHECK(complaint("00.5", number) == "f.yaml:1:4: k: a number may not begin with 0, found '00.5'");
  CHECK(complaint("1e999", number) == "f.yaml:1:4: k: '1e999' is too large or too small for a number here");
  const auto unit = [](const Node& node) { return yaml::read_number(node, {0, 1}); };
  CHECK(complaint("1.0000001", unit) == "f.yaml:1:4: k: must be between 0 and 1, found '1.0000001'");
  CHECK(complaint("-0.1", unit) == "f.yaml:1:4: k: must be between 0 and 1, found '-0.1'");

  const Node root = parsed("k: 1e39");  // a double, but no float
  Reader r(root);
  CHECK(r.number("k", 2.0f, {.min = 0}) == 2.0f);
  CHECK(r.finish().error().text == "f.yaml:1:4: k: '1e39' is too large or too small for a number here");
}

TEST_CASE("yaml/reader: reads 0.8 as 0.8 whatever the locale", "[yaml]") {
  // Where no comma locale is installed the calls change nothing and the plain reading is checked.
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    if (std::setlocale(LC_ALL, name)) break;
  const Node root = parsed("k: 0.8");
  const auto value = yaml::read_number(*root.find("k"));
  const std::string message = complaint("1.5", [](const Node& node) { return yaml::read_number(node, {0.25, 1}); });
  std::setlocale(LC_ALL, before.c_str());
  REQUIRE(value.ok());
  CHECK(*value == 0.8);
  CHECK(message == "f.yaml:1:4: k: must be between 0.25 and 1, found '1.5'");
}

TEST_CASE("yaml/reader: takes only true and false as booleans", "[yaml]") {
  CHECK(complaint("true", boolean).empty());
  CHECK(complaint("false", boolean).empty());
  for (const char* bad : {"yes", "no", "on", "off", "True", "FALSE", "1", "0"})
    CHECK(complaint(bad, boolean) == "f.yaml:1:4: k: must be true or false, found '" + std::string(bad) + "'");
  CHECK(complaint("\"true\"", boolean).find("found 'true' in quotes") != std::string::npos);
}

TEST_CASE("yaml/reader: says what a text and a list and a word must be", "[yaml]") {
  CHECK(complaint("[a]", yaml::read_string) == "f.yaml:1:4: k: must be text, found a list");
  CHECK(complaint("a", yaml::read_strings) == "f.yaml:1:4: k: must be a list of texts such as [\"a\", \"b\"], found 'a'");
  CHECK(complaint("{a: 1}", yaml::read_strings) == "f.yaml:1:4: k: must be a list of texts such as [\"a\", \"b\"], found a mapping");
  CHECK(complaint("[a, [b]]", yaml::read_strings) == "f.yaml:1:8: k[1]: must be text, found a list");
  const Node root = parsed("k: thre\nl: [one]\n");
  Reader r(root);
  CHECK(r.choice("k", 9, {{"one", 1}, {"two", 2}, {"three", 3}}) == 9);
  CHECK(r.finish().error().text == "f.yaml:1:4: k: must be one, two or three, found 'thre'");
  Reader list(root);
  CHECK(list.choice("l", 9, {{"one", 1}, {"two", 2}}) == 9);
  CHECK(list.finish().error().text == "f.yaml:2:4: l: must be one or two, found a list");
}

TEST_CASE("yaml/reader: refuses unknown keys with the nearest name or all names", "[yaml]") {
  const Node root = parsed("s:\n  top_k: 1\n  temprature: 0\n  zzz: 1\n");
  const Node& section = *root.find("s");
  Reader near(section);
  near.integer("top_k", 0, {});
  near.number("temperature", 0.0, {});
  CHECK(near.finish().error().text == "f.yaml:3:3: s.temprature: unknown key; did you mean 'temperature'?");
  Reader far(section);
  far.integer("top_k", 0, {});
  far.number("seed", 0.0, {});
  far.node("temprature");
  far.number("seed", 0.0, {});  // asked for twice, listed once
  CHECK(far.finish().error().text == "f.yaml:4:3: s.zzz: unknown key; the keys here are: top_k, seed, temprature");
}

TEST_CASE("yaml/reader: refuses a section that is no mapping and a missing key", "[yaml]") {
  const Node root = parsed("s: 5\nm: {a: 1}\n");
  Reader scalar(*root.find("s"));
  CHECK(scalar.string("x", "y") == "y");
  CHECK(scalar.finish().error().text == "f.yaml:1:4: s: must be a mapping (key: value), found '5'");
  Reader mapping(*root.find("m"));
  mapping.require({"a", "name"});
  CHECK(mapping.finish().error().text == "f.yaml:2:4: m: the key 'name' is missing");
}
