// Each refusal of the parser with its whole text, the tree that it builds, and the limits.
#include "yaml/document.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "support/support.hpp"

using namespace minfer;
using yaml::Node;

namespace {

std::string repeat(std::string_view unit, size_t n) {
  std::string s;
  while (n-- > 0) s += unit;
  return s;
}

// The error of a text that must be refused.
std::string refusal(std::string_view text) {
  const auto document = yaml::parse_yaml(text, "f.yaml");
  REQUIRE_FALSE(document.ok());
  CHECK(document.error().code == ErrorCode::kInvalidArgument);
  CHECK(document.error().text.find('\n') == std::string::npos);
  return document.error().text;
}

Node parsed(std::string_view text) {
  auto document = yaml::parse_yaml(text, "f.yaml");
  if (!document.ok()) FAIL(document.error().text);
  return document->root;
}

// Kind, key, text and children; places are left out.
std::string outline(const Node& node) {
  std::string s = node.key.empty() ? "" : node.key + "=";
  if (node.kind == Node::Kind::kScalar) return s + (node.quoted ? "'" + node.text + "'" : node.text);
  s += node.kind == Node::Kind::kSequence ? "[" : "{";
  for (const Node& child : node.children) s += outline(child) + " ";
  return s + (node.kind == Node::Kind::kSequence ? "]" : "}");
}

}  // namespace

TEST_CASE("yaml/document: keeps text and quotes and order and places", "[yaml]") {
  const Node root = parsed("model: a b.gguf\nbackends:\n  - {name: \"cuda\", n: 5}\n  - cpu\nstop: ['x', \"y\"]\n");
  CHECK(root.children.size() == 3);
  CHECK(root.line == 1);
  const Node& backends = *root.find("backends");
  CHECK(outline(backends) == "backends=[{name='cuda' n=5 } cpu ]");
  const Node& name = *backends.children[0].find("name");
  CHECK(name.path == "backends[0].name");
  CHECK(name.place() == "f.yaml:3:12");
  CHECK(name.key_column == 6);
  CHECK(name.error("bad").text == "f.yaml:3:12: backends[0].name: bad");
  CHECK(name.key_error("bad").text == "f.yaml:3:6: backends[0].name: bad");
  CHECK(backends.children[1].path == "backends[1]");
  CHECK(root.find("name") == nullptr);
  CHECK(backends.find("name") == nullptr);
}

TEST_CASE("yaml/document: reads CRLF and a byte order mark like plain LF", "[yaml]") {
  const std::string lf = "# c\na: 1\nb: \"x\"\nc: |\n  foo\n  bar\nd: [p, q]\n";
  std::string crlf = "\xEF\xBB\xBF";
  for (const char c : lf) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CHECK(outline(parsed(lf)) == "{a=1 b='x' c='foo\nbar\n' d=[p q ] }");
  CHECK(outline(parsed(crlf)) == outline(parsed(lf)));
  CHECK(parsed(crlf).find("d")->place() == "f.yaml:7:4");
}

TEST_CASE("yaml/document: refuses a duplicate key and names both lines", "[yaml]") {
  CHECK(refusal("context:\n  n_ctx: 1\n  n_ctx: 2\n") == "f.yaml:3:3: context.n_ctx: is given twice, first in line 2");
  CHECK(refusal("a: 1\n\"a\": 2\n") == "f.yaml:2:1: a: is given twice, first in line 1");
  CHECK(refusal("l: [{x: 1, x: 2}]") == "f.yaml:1:12: l[0].x: is given twice, first in line 1");
}

TEST_CASE("yaml/document: refuses anchors and aliases and merge keys", "[yaml]") {
  const std::string anchors = "anchors (&name) and aliases (*name) are not accepted; write the value out, or put it in quotes";
  CHECK(refusal("a: &x 5\nb: *x\n") == "f.yaml:1:4: a: " + anchors);
  CHECK(refusal("a: &a [*a]\n") == "f.yaml:1:4: a: " + anchors);
  CHECK(refusal("a: &x\nb: 1\n") == "f.yaml:1:4: a: " + anchors);
  CHECK(refusal("&x a: 1\n") == "f.yaml:1:1: " + anchors);
  CHECK(refusal("a: *x\n").find("f.yaml:1:4: a: ") == 0);
  CHECK(refusal("a: {<<: {b: 1}}\n") == "f.yaml:1:5: a: merge keys (<<) are not accepted; write the keys out");
  CHECK(outline(parsed("a: \"*x\"\nb: '&y'\n'<<': z\n")) == "{a='*x' b='&y' <<=z }");
}

TEST_CASE("yaml/document: refuses tags of every form", "[yaml]") {
  CHECK(refusal("a: !!str 5\n") == "f.yaml:1:4: a: tags are not accepted (found 'tag:yaml.org,2002:str'); quote text that begins with '!'");
  CHECK(refusal("a: ! 5\n") == "f.yaml:1:4: a: tags are not accepted (found '!'); quote text that begins with '!'");
  CHECK(refusal("m: !!python/object:x {}\n").find("f.yaml:1:4: m: tags are not accepted") == 0);
  CHECK(refusal("m: !t [1]\n").find("f.yaml:1:4: m: tags are not accepted") == 0);
  CHECK(outline(parsed("a: \"!x\"")) == "{a='!x' }");
}

TEST_CASE("yaml/document: refuses a second document and an empty one", "[yaml]") {
  CHECK(refusal("a: 1\n---\nb: 2\n") == "f.yaml:2:1: a second document begins here; a file holds one");
  CHECK(refusal("a: 1\n...\nb: 2\n") == "f.yaml:3:1: a second document begins here; a file holds one");
  CHECK(refusal("") == "f.yaml:1:1: the document is empty");
  CHECK(refusal("# only a comment\n") == "f.yaml:1:1: the document is empty");
  CHECK(refusal("---\n").find("the document is empty") != std::string::npos);
  CHECK(outline(parsed("%YAML 1.2\n---\na: 1\n...\n")) == "{a=1 }");
}

TEST_CASE("yaml/document: refuses keys that are not text and keys without a value", "[yaml]") {
  CHECK(refusal("? [x]\n: 5\n") == "f.yaml:1:3: a key must be plain text, not a list or a mapping");
  CHECK(refusal("{a: 1}: 5\n") == "f.yaml:1:1: a key must be plain text, not a list or a mapping");
  CHECK(refusal("null: 5\n").find("f.yaml:1:1: a key must be plain text; to use the word null") == 0);
  CHECK(refusal("a: {: 5}\n").find("f.yaml:1:5: a: a key must be plain text") == 0);
  CHECK(refusal("\"\": 5\n") == "f.yaml:1:1: a key may not be empty");
  CHECK(refusal(std::string(129, 'k') + ": 5\n") == "f.yaml:1:1: a key is longer than 128 bytes");
  CHECK(refusal("\"a\\nb\": 5\n") == "f.yaml:1:1: control byte in key 'a\\nb'");
  const std::string no_value = "has no value; write one or remove it (\"\" is empty text, [] an empty list)";
  CHECK(refusal("b:\n  a:\nc: 1\n") == "f.yaml:2:3: b.a: " + no_value);
  CHECK(refusal("a: ~\n") == "f.yaml:1:1: a: " + no_value);
  CHECK(refusal("a: null\n") == "f.yaml:1:1: a: " + no_value);
  CHECK(refusal("{a, b: 1}") == "f.yaml:1:2: a: " + no_value);
  CHECK(refusal("a: [1, ~]\n") == "f.yaml:1:8: a[1]: " + no_value);
}

TEST_CASE("yaml/document: limits depth and number of values", "[yaml]") {
  CHECK(outline(parsed(repeat("[", 32) + repeat("]", 32))) == repeat("[", 32) + repeat("] ", 31) + "]");
  CHECK(refusal(repeat("[", 33) + repeat("]", 33)).find("f.yaml:1:33: [0]") == 0);
  CHECK(refusal(repeat("[", 33) + repeat("]", 33)).find(": nested more than 32 levels deep") != std::string::npos);
  CHECK(refusal(repeat("[", 100000)).find("f.yaml:1:1: ") == 0);  // never closed: yaml-cpp takes it for a key
  CHECK(refusal(repeat("- ", 40) + "x").find("nested more than 32 levels deep") != std::string::npos);
  CHECK(parsed(minfer::text("[{}]", repeat("a,", 9999))).children.size() == 9999);  // the list itself is one of the 10000
  CHECK(refusal(minfer::text("[{}]", repeat("a,", 10000))) == "f.yaml:1:20000: [9999]: more than 10000 values in one file");
}

TEST_CASE("yaml/document: refuses bytes that are not YAML text", "[yaml]") {
  CHECK(refusal("a: 1\nb: \xff\n") == "f.yaml:2:4: byte ff is not UTF-8; save the file as UTF-8");
  // Overlong forms, a surrogate, beyond U+10FFFF, cut short, a lone continuation byte.
  for (const char* bad :
       {"\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\x80"})
    CHECK(refusal(std::string("k: ") + bad).find("f.yaml:1:4: byte") == 0);
  for (const char* good : {"\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(parsed(std::string("k: 'x") + good + "'").find("k")->text == std::string("x").append(good));
  CHECK(refusal(std::string("a: 1\nb: x\0y\n", 11)) == "f.yaml:2:5: control byte 00 is not allowed");
  CHECK(refusal("a: 1\x04\nb: 2\n") == "f.yaml:1:5: control byte 04 is not allowed");
  CHECK(refusal("a: 1\x7f") == "f.yaml:1:5: control byte 7f is not allowed");
  CHECK(refusal("a: 1\rb: 2\n") == "f.yaml:1:5: a carriage return without a line feed is not a line end");
  CHECK(refusal(std::string("\xFF\xFE"
                            "a\0",
                            4)) == "f.yaml:1:1: byte ff is not UTF-8; save the file as UTF-8");  // UTF-16
}

TEST_CASE("yaml/document: says where a text is no YAML and what to do", "[yaml]") {
  CHECK(refusal("context:\n\tn_ctx: 5\n") == "f.yaml:2:7: context: the line is indented with a tab; use spaces");
  CHECK(refusal("context:\n  \tn_ctx: 5\n") == "f.yaml:2:9: context: the line is indented with a tab; use spaces");
  CHECK(refusal("a: b: c\n") == "f.yaml:1:5: a: ': ' is not expected here; check the indentation, and quote text that holds ': '");
  CHECK(refusal("a: 1\ns: {b: 1, c: 2\n") == "f.yaml:2:4: s: opened here and never closed");
  CHECK(refusal("a: 1\n]\n") == "f.yaml:2:1: not valid YAML: illegal flow end");
  CHECK(refusal("a: 1\ns: [b, c\nd: 1\n") == "f.yaml:2:4: s: opened here and never closed");
  CHECK(refusal("a: [b, c\n") == "f.yaml:1:8: a[1].c: has no value, or the list around it is not closed with ']'");
  CHECK(refusal("a: {b: 1") == "f.yaml:1:4: a: opened here and never closed");
  CHECK(refusal("a: \"open\nb: 3").find("f.yaml:2:5: a: not valid YAML: ") == 0);
}

TEST_CASE("yaml/document: reads files up to 1 MiB and nothing that is no file", "[yaml]") {
  const test::TempDir dir;
  const auto path = dir.path() / "x.yaml";
  test::write_file(path, "a: 1\n#" + std::string((1 << 20) - 7, 'c') + "\n");
  const auto document = yaml::parse_yaml_file(path);
  REQUIRE(document.ok());
  CHECK(document->root.find("a")->place() == path.string() + ":1:4");

  test::write_file(path, "a: 1\n#" + std::string((1 << 20) - 6, 'c') + "\n");
  CHECK(yaml::parse_yaml_file(path).error().text == path.string() + ":1:1: the file is larger than 1048576 bytes");
  CHECK(yaml::parse_yaml_file("/dev/zero").error().text == "/dev/zero:1:1: the file is larger than 1048576 bytes");
  CHECK(yaml::parse_yaml_file(dir.path()).error().text == dir.path().string() + ": is a folder, not a YAML file");
  const auto missing = yaml::parse_yaml_file(dir.path() / "none.yaml");
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().text == (dir.path() / "none.yaml").string() + ": no such file");
}

TEST_CASE("yaml/document: quotes text for a one-line message", "[yaml]") {
  CHECK(yaml::quote("a b") == "'a b'");
  CHECK(yaml::quote("a\nb\t\x1b") == "'a\\nb\\t\\x1b'");
  CHECK(yaml::quote(repeat("x", 61)) == minfer::text("'{}...'", repeat("x", 60)));
  CHECK(yaml::quote(repeat("x", 59) + "\xC3\xA9z") == minfer::text("'{}...'", repeat("x", 59)));
}
