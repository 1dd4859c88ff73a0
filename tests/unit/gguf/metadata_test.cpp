#include "gguf/metadata.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "gguf/describe.hpp"
#include "gguf/reader.hpp"
#include "support/gguf_writer.hpp"

using namespace minfer;
using namespace minfer::gguf;
using minfer::test::GgufWriter;

namespace {
// A parsed file together with the bytes it points into.
struct Parsed {
  explicit Parsed(const GgufWriter& writer) : bytes(writer.bytes()) {
    auto parsed = parse_file(std::as_bytes(std::span(bytes)));
    if (!parsed.ok()) FAIL(parsed.error().text);
    metadata = std::move(parsed->metadata);
  }
  std::string bytes;
  Metadata metadata;
};

template <class T>
void check_refused(const Result<T>& result, ErrorCode code, std::initializer_list<const char*> words) {
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == code);
  for (const char* word : words) CHECK_THAT(result.error().text, Catch::Contains(word));
}
}  // namespace

TEST_CASE("gguf/metadata: an integer getter takes any integer type whose value fits", "[gguf]") {
  GgufWriter w;
  w.set("u8", uint8_t{255}).set("i8", int8_t{-3}).set("u16", uint16_t{65535}).set("i16", int16_t{-300});
  w.set("u32", uint32_t{4000000000}).set("i32", int32_t{64}).set("u64", std::numeric_limits<uint64_t>::max());
  w.set("i64", std::numeric_limits<int64_t>::min());
  const Parsed file(w);
  const Metadata& m = file.metadata;
  CHECK(*m.u64("u8") == 255);
  CHECK(*m.u64("u16") == 65535);
  CHECK(*m.u32("u32") == 4000000000u);
  CHECK(*m.i64("u32") == 4000000000);
  CHECK(*m.u64("i32") == 64);
  CHECK(*m.u64("u64") == UINT64_MAX);
  CHECK(*m.i64("i8") == -3);
  CHECK(*m.i64("i16") == -300);
  CHECK(*m.i64("i64") == INT64_MIN);
  check_refused(m.u64("i8"), ErrorCode::kInvalidArgument, {"'i8'", "-3"});
  check_refused(m.u32("u64"), ErrorCode::kInvalidArgument, {"'u64'", "18446744073709551615", "4294967295"});
  check_refused(m.i64("u64"), ErrorCode::kInvalidArgument, {"'u64'", "18446744073709551615"});
}

TEST_CASE("gguf/metadata: a missing key and a wrong type are different errors that name key and types", "[gguf]") {
  GgufWriter w;
  w.set("text", "1").set("number", uint32_t{1}).set("real", 2.0f).set("flag", true).set("list", std::vector<uint32_t>{1});
  const Parsed file(w);
  const Metadata& m = file.metadata;
  check_refused(m.u64("absent"), ErrorCode::kNotFound, {"'absent'", "missing", "integer"});
  check_refused(m.strings("absent"), ErrorCode::kNotFound, {"'absent'", "missing", "array of strings"});
  check_refused(m.u64("text"), ErrorCode::kInvalidArgument, {"'text'", "type string", "expected an integer"});
  check_refused(m.u64("real"), ErrorCode::kInvalidArgument, {"'real'", "type f32", "expected an integer"});
  check_refused(m.u64("flag"), ErrorCode::kInvalidArgument, {"'flag'", "type bool", "expected an integer"});
  check_refused(m.u64("list"), ErrorCode::kInvalidArgument, {"'list'", "array of u32", "expected an integer"});
  check_refused(m.f64("number"), ErrorCode::kInvalidArgument, {"'number'", "type u32", "expected a float"});
  check_refused(m.boolean("number"), ErrorCode::kInvalidArgument, {"'number'", "type u32", "expected a bool"});
  check_refused(m.string("number"), ErrorCode::kInvalidArgument, {"'number'", "type u32", "expected a string"});
  check_refused(m.strings("list"), ErrorCode::kInvalidArgument, {"'list'", "array of u32", "expected an array of strings"});
  check_refused(m.floats("list"), ErrorCode::kInvalidArgument, {"'list'", "array of u32", "expected an array of floats"});
  check_refused(m.ints("number"), ErrorCode::kInvalidArgument, {"'number'", "type u32", "expected an array of integers"});
}

TEST_CASE("gguf/metadata: or_default replaces a missing key and nothing else", "[gguf]") {
  GgufWriter w;
  w.set("text", "1").set("number", uint32_t{7});
  const Parsed file(w);
  CHECK(*or_default(file.metadata.u64("absent"), uint64_t{5}) == 5);
  CHECK(*or_default(file.metadata.u64("number"), uint64_t{5}) == 7);
  CHECK_FALSE(or_default(file.metadata.u64("text"), uint64_t{5}).ok());
}

TEST_CASE("gguf/metadata: strings and floats and bools and arrays come back as written", "[gguf]") {
  const std::vector<std::string> strings{"", "a", std::string("b\0c", 3), "\xff\xfe", "last"};
  GgufWriter w;
  w.set("string", std::string_view("x\0y", 3)).set("f32", 0.1f).set("f64", 0.1).set("yes", true).set("no", false);
  w.set("strings", strings).set("none", std::vector<std::string>{});
  w.set("i8s", std::vector<int8_t>{-1, 2})
      .set("u64s", std::vector<uint64_t>{1, uint64_t{1} << 62})
      .set("u64s.large", std::vector<uint64_t>{0, UINT64_MAX});
  w.set("f32s", std::vector<float>{1.5f, -0.25f}).set("f64s", std::vector<double>{1e300});
  const Parsed file(w);
  const Metadata& m = file.metadata;
  CHECK(*m.string("string") == std::string_view("x\0y", 3));
  CHECK(*m.f64("f32") == static_cast<double>(0.1f));
  CHECK(*m.f64("f64") == 0.1);
  CHECK(*m.boolean("yes"));
  CHECK_FALSE(*m.boolean("no"));
  const auto found = m.strings("strings");
  REQUIRE(found.ok());
  CHECK(found->size() == 5);
  CHECK(std::vector<std::string>(found->begin(), found->end()) == strings);
  const auto none = m.strings("none");
  REQUIRE(none.ok());
  CHECK(none->begin() == none->end());
  const auto bytes = m.ints("i8s");
  REQUIRE(bytes.ok());
  CHECK(bytes->size() == 2);
  CHECK((*bytes)[0] == -1);
  CHECK((*bytes)[1] == 2);
  CHECK((*m.ints("u64s"))[1] == int64_t{1} << 62);
  check_refused(m.ints("u64s.large"), ErrorCode::kInvalidArgument, {"'u64s.large'", "element 1", "18446744073709551615"});
  CHECK((*m.floats("f32s"))[1] == -0.25);
  CHECK((*m.floats("f64s"))[0] == 1e300);
}

TEST_CASE("gguf/metadata: values are described on one line and long arrays are cut", "[gguf]") {
  GgufWriter w;
  w.set("s", "two\nlines").set("f", 1e-5f).set("b", true).set("u", UINT64_MAX).set("i", int8_t{-4});
  std::vector<int32_t> eight, nine;
  for (int i = 0; i < 9; ++i) (i < 8 ? eight.push_back(i) : void()), nine.push_back(i);
  w.set("eight", eight).set("nine", nine).set("strings", std::vector<std::string>(20, "x")).set("empty", std::vector<float>{});
  std::vector<std::string> letters;
  for (char c = 'a'; c <= 'k'; ++c) letters.emplace_back(1, c);
  w.set("letters", letters).set("long", std::string(1000, 'y')).set("longer", std::string(70000, 'z'));
  const Parsed file(w);
  const auto shown = [&](const char* key) { return describe_value(*file.metadata.find(key)); };
  CHECK(shown("s") == "'two\\nlines'");
  CHECK(shown("f") == "1e-05");
  CHECK(shown("b") == "true");
  CHECK(shown("u") == "18446744073709551615");
  CHECK(shown("i") == "-4");
  CHECK(shown("eight") == "[0, 1, 2, 3, 4, 5, 6, 7]");
  CHECK(shown("nine") == "[0, 1, 2, 3, 4, ..., 6, 7, 8] (9 elements)");
  CHECK(shown("letters") == "['a', 'b', 'c', 'd', 'e', ..., 'i', 'j', 'k'] (11 elements)");
  CHECK(shown("empty") == "[]");
  CHECK(shown("long") == "'" + std::string(1000, 'y') + "'");
  CHECK(shown("longer").size() < 66000);
  CHECK_THAT(shown("longer"), Catch::EndsWith("... (70000 bytes)"));
}

TEST_CASE("gguf/metadata: an array of strings whose file lost its pages ends at its end", "[gguf]") {
  std::vector<std::byte> bytes(8 + 6 + 8 + 7);  // two strings, of 6 and of 7 bytes
  Value value;
  value.count = 2;
  value.bytes = bytes;
  bytes[0] = std::byte{6};
  bytes[14] = std::byte{7};
  const auto lengths = [&] {
    std::vector<size_t> all;
    for (const std::string_view text : StringArray(value)) all.push_back(text.size());
    return all;
  };
  CHECK(lengths() == std::vector<size_t>{6, 7});
  bytes[0] = bytes[14] = std::byte{0};  // as pages that are gone read
  CHECK(lengths() == std::vector<size_t>{0, 0, 0});
  bytes[0] = std::byte{200};
  CHECK(lengths() == std::vector<size_t>{21});
}
