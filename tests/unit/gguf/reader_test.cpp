// Hand-made files for every rule of the reader: the good form is taken, each bad one is refused with the words that help.
#include "gguf/reader.hpp"

#include <catch2/catch.hpp>

#include "support/gguf_writer.hpp"

using namespace minfer;
using namespace minfer::gguf;
using minfer::test::from_hex;
using minfer::test::GgufWriter;

namespace {
std::span<const std::byte> view(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

void check_refused(const std::string& bytes, std::initializer_list<const char*> words) {
  const auto parsed = parse_file(view(bytes));
  REQUIRE_FALSE(parsed.ok());
  for (const char* word : words) CHECK_THAT(parsed.error().text, Catch::Contains(word));
  CHECK(parsed.error().text.find('\n') == std::string::npos);
}
void check_refused(const GgufWriter& writer, std::initializer_list<const char*> words) { check_refused(writer.bytes(), words); }

// Two keys, three tensors: 'a' [4, 2] F32, 'b' [32] Q8_0, 'c' [3] F32.
GgufWriter small_file() {
  GgufWriter w;
  w.set("general.architecture", "llama").set("llama.block_count", uint32_t{1});
  w.tensor("a", GgufWriter::kF32, {4, 2}, std::string(32, 'A'));
  w.tensor("b", GgufWriter::kQ8_0, {32}, std::string(34, 'B'));
  w.tensor("c", GgufWriter::kF32, {3}, std::string(12, 'C'));
  return w;
}

std::string data_of(const Tensor* tensor) { return {reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()}; }
}  // namespace

TEST_CASE("gguf/reader: reads versions 2 and 3 with keys and tensors in file order", "[gguf]") {
  for (const uint32_t version : {2u, 3u}) {
    GgufWriter w = small_file();
    w.version = version;
    const std::string bytes = w.bytes() + "trailing bytes";
    const auto file = parse_file(view(bytes));
    REQUIRE(file.ok());
    CHECK(file->version == version);
    CHECK(file->alignment == 32);
    REQUIRE(file->metadata.values().size() == 2);
    CHECK(file->metadata.values()[1].name == "llama.block_count");
    REQUIRE(file->tensors.size() == 3);
    CHECK(file->tensors[0].name == "a");
    const Tensor* a = file->tensors.find("a");
    REQUIRE(a);
    CHECK(a->type == TensorType::kF32);
    CHECK(a->n_dims == 2);
    CHECK(a->dims == std::array<uint64_t, 4>{4, 2, 1, 1});
    CHECK(data_of(a) == std::string(32, 'A'));
    CHECK(data_of(file->tensors.find("b")) == std::string(34, 'B'));
    CHECK(data_of(file->tensors.find("c")) == std::string(12, 'C'));
    CHECK_FALSE(file->tensors.find("d"));
  }
}

TEST_CASE("gguf/reader: accepts a file that ends right behind the last tensor without padding", "[gguf]") {
  std::string bytes = small_file().bytes();
  bytes.resize(bytes.size() - 20);  // 12 bytes of 'c' in a slot of 32
  REQUIRE(parse_file(view(bytes)).ok());
  bytes.resize(bytes.size() - 1);
  check_refused(bytes, {"'c'", "truncated", "F32"});
}

TEST_CASE("gguf/reader: accepts a file without tensors or keys", "[gguf]") {
  const auto file = parse_file(view("GGUF" + GgufWriter::raw(uint32_t{3}) + std::string(16, '\0')));
  REQUIRE(file.ok());
  CHECK(file->tensors.empty());
  CHECK(file->metadata.values().empty());
}

TEST_CASE("gguf/reader: refuses other files and versions and says which", "[gguf]") {
  const auto version = [](uint32_t number) {
    GgufWriter w = small_file();
    w.version = number;
    return w;
  };
  check_refused("ggml and more than that", {"'ggml'", "not 'GGUF'"});
  check_refused("GG", {"magic", "2 remain"});
  check_refused(version(0), {"version 0"});
  check_refused(version(1), {"version 1", "convert"});
  check_refused(version(4), {"version 4", "newer"});
  check_refused(version(UINT32_MAX), {"4294967295", "newer"});
  check_refused(version(0x03000000), {"byte order", "0x03000000"});
  check_refused(version(0x02000000), {"byte order"});
}

TEST_CASE("gguf/reader: refuses a big-endian file and mentions byte order", "[gguf]") {
  check_refused(from_hex("47475546"
                         "00000003"
                         "0000000000000001"
                         "0000000000000001") +
                    std::string(64, '\0'),
                {"byte order", "big-endian"});
}

TEST_CASE("gguf/reader: refuses lengths and counts that exceed the file before allocating", "[gguf]") {
  SECTION("a key length of 2^32 - 1") {
    const std::string file = from_hex(
        "47475546"
        "03000000"
        "0000000000000000"
        "0100000000000000"
        "FFFFFFFF00000000");
    check_refused(file, {"key count", "offset 16", "8 bytes remain"});
    check_refused(file + std::string(64, 'k'), {"key 1", "offset 24", "4294967295"});
  }
  SECTION("a key count of 500 million") {
    check_refused("GGUF" + GgufWriter::raw(uint32_t{3}) + GgufWriter::raw(uint64_t{0}) + GgufWriter::raw(uint64_t{0x1DCD6500}),
                  {"key count", "offset 16", "500000000"});
  }
  SECTION("a tensor count of 2^62") {
    GgufWriter w;
    w.tensor_count = uint64_t{1} << 62;
    check_refused(w, {"tensor count", "offset 8", "4611686018427387904"});
  }
  SECTION("an array of 2^60 elements") {
    GgufWriter w;
    w.set_raw("a", GgufWriter::kArray, GgufWriter::raw(uint32_t{4}) + GgufWriter::raw(uint64_t{1} << 60));
    check_refused(w, {"'a'", "array length at offset 41", "1152921504606846976"});
  }
  SECTION("an array whose byte count wraps to 8") {
    GgufWriter w;
    w.set_raw("a", GgufWriter::kArray, GgufWriter::raw(uint32_t{10}) + GgufWriter::raw((uint64_t{1} << 61) + 1) + std::string(8, '\0'));
    check_refused(w, {"'a'", "array length", "2305843009213693953"});
  }
  SECTION("a string whose end wraps") {
    GgufWriter w;
    w.set_raw("s", GgufWriter::kString, GgufWriter::raw(UINT64_MAX - 7) + "abc");
    check_refused(w, {"'s'", "length 18446744073709551608"});
  }
  SECTION("a string in an array that ends behind the file") {
    GgufWriter w;
    w.set_raw("a", GgufWriter::kArray,
              GgufWriter::raw(GgufWriter::kString) + GgufWriter::raw(uint64_t{2}) + GgufWriter::raw_string("ok") +
                  GgufWriter::raw(uint64_t{999}));
    check_refused(w, {"'a'", "element 1", "length 999"});
  }
  SECTION("more keys than the file holds") {
    GgufWriter w = small_file();
    w.key_count = 3;
    check_refused(w, {"tensor 1 of 3"});  // the third key was read from the first tensor's record
  }
}

TEST_CASE("gguf/reader: refuses nested arrays at any depth without recursion", "[gguf]") {
  GgufWriter w;
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += GgufWriter::raw(GgufWriter::kArray) + GgufWriter::raw(uint64_t{1});
  w.set_raw("a", GgufWriter::kArray, nested);
  check_refused(w, {"'a'", "arrays of arrays"});
}

TEST_CASE("gguf/reader: refuses bad value types and bools and keys", "[gguf]") {
  const auto with = [](std::string_view key, uint32_t type, std::string_view bytes) {
    GgufWriter w;
    w.set_raw(key, type, bytes);
    return w;
  };
  check_refused(with("k", 13, "xxxxxxxx"), {"'k'", "value type", "13"});
  check_refused(with("k", UINT32_MAX, "xxxxxxxx"), {"'k'", "4294967295"});
  check_refused(with("k", 9, GgufWriter::raw(uint32_t{77}) + GgufWriter::raw(uint64_t{0})), {"'k'", "element type", "77"});
  check_refused(with("k", 7, "\x02"), {"'k'", "bool is 2"});
  check_refused(with("k", 9, GgufWriter::raw(uint32_t{7}) + GgufWriter::raw(uint64_t{3}) + std::string("\0\x01\xff", 3)),
                {"'k'", "bool is 255"});
  check_refused(with("", 4, "abcd"), {"key 1 of 1", "empty"});
  check_refused(with("\xff\xfe", 4, "abcd"), {"\\xff\\xfe", "UTF-8"});
  GgufWriter twice;
  twice.set("general.architecture", "llama").set("x", 1).set("general.architecture", "qwen2");
  check_refused(twice, {"'general.architecture'", "twice"});
}

TEST_CASE("gguf/reader: alignment must be a power of two in range and decides where data lies", "[gguf]") {
  for (const uint32_t alignment : {8u, 32u, 64u, 4096u}) {
    GgufWriter w = small_file();
    w.alignment = alignment;
    w.set("general.alignment", alignment);
    const std::string bytes = w.bytes();
    const auto file = parse_file(view(bytes));
    REQUIRE(file.ok());
    CHECK(file->alignment == alignment);
    CHECK(data_of(file->tensors.find("c")) == std::string(12, 'C'));
    CHECK(static_cast<size_t>(file->tensors.find("c")->bytes.data() - view(bytes).data()) % alignment == 0);
  }
  GgufWriter as_i32 = small_file();
  as_i32.alignment = 64;
  as_i32.set("general.alignment", int32_t{64});
  CHECK(parse_file(view(as_i32.bytes())).ok());
  for (const uint32_t alignment : {0u, 3u, 4u, 48u, 0x80000000u}) {
    GgufWriter w = small_file();
    w.set("general.alignment", alignment);
    check_refused(w, {"'general.alignment'", std::to_string(alignment).c_str(), "power of two"});
  }
  GgufWriter text = small_file();
  text.set("general.alignment", "32");
  check_refused(text, {"'general.alignment'", "type string", "integer"});
}

TEST_CASE("gguf/reader: refuses dims of zero and wrong dim counts and partial blocks naming the tensor", "[gguf]") {
  const auto with = [](auto change) {
    GgufWriter w = small_file();
    change(w.tensors[1]);
    return w;
  };
  using Record = GgufWriter::TensorRecord;
  check_refused(with([](Record& t) { t.dims = {0}; }), {"'b'", "dim 0 is 0"});
  check_refused(with([](Record& t) { t.dims = {32, 0}; }), {"'b'", "dim 1 is 0"});
  check_refused(with([](Record& t) { t.dims = {}; }), {"'b'", "n_dims is 0"});
  check_refused(with([](Record& t) { t.dims = {32, 1, 1, 1, 1}; }), {"'b'", "n_dims is 5"});
  check_refused(with([](Record& t) { t.n_dims = UINT32_MAX; }), {"'b'", "n_dims is 4294967295"});
  check_refused(with([](Record& t) { t.dims = {33}; }), {"'b'", "33", "block of 32"});
  check_refused(with([](Record& t) { t.dims = {uint64_t{1} << 32, uint64_t{1} << 32}; }), {"'b'", "2^63"});
  check_refused(with([](Record& t) { t.dims = {32, (uint64_t{1} << 59) + 32}; }), {"'b'", "2^63"});
  check_refused(with([](Record& t) { t.dims = {32, UINT64_MAX}; }), {"'b'", "2^63"});
  check_refused(with([](Record& t) { t.dims = {32, uint64_t{1} << 50}; }), {"'b'", "but the file has"});
}

TEST_CASE("gguf/reader: refuses unknown and retired tensor types by id and name", "[gguf]") {
  const auto with_type = [](uint32_t type) {
    GgufWriter w = small_file();
    w.tensors[1].type = type;
    w.tensors[1].dims = {256};
    return w;
  };
  check_refused(with_type(4), {"'b'", "Q4_2", "id 4", "removed"});
  check_refused(with_type(5), {"'b'", "Q4_3", "id 5", "removed"});
  check_refused(with_type(31), {"'b'", "Q4_0_4_4", "id 31", "removed"});
  check_refused(with_type(36), {"'b'", "IQ4_NL_4_4", "id 36", "removed"});
  check_refused(with_type(43), {"'b'", "id 43", "unknown"});
  check_refused(with_type(4242), {"'b'", "id 4242", "unknown"});
  // Data laid out for another type: the type that does not fit is named, although the next tensor shows it.
  check_refused(with_type(23), {"'b'", "IQ4_XS", "id 23"});
  check_refused(with_type(39), {"'b'", "MXFP4", "id 39"});
}

TEST_CASE("gguf/reader: reads types that no engine computes when their sizes are right", "[gguf]") {
  GgufWriter w;
  w.tensor("x", GgufWriter::kIQ4_XS, {256}, std::string(136, 'x')).tensor("y", 39, {32}, std::string(17, 'y'));
  const std::string bytes = w.bytes();
  const auto file = parse_file(view(bytes));
  REQUIRE(file.ok());
  CHECK(type_name(file->tensors.find("x")->type) == "IQ4_XS");
  CHECK(data_of(file->tensors.find("y")) == std::string(17, 'y'));
}

TEST_CASE("gguf/reader: refuses offsets with gaps and overlaps and misalignment and beyond the file", "[gguf]") {
  const auto with_offset = [](size_t tensor, uint64_t offset) {
    GgufWriter w = small_file();
    w.tensors[tensor].offset = offset;
    return w;
  };
  check_refused(with_offset(0, 32), {"'a'", "offset 32", "expected 0"});
  check_refused(with_offset(1, 0), {"'b'", "offset 0", "expected 32", "'a'"});
  check_refused(with_offset(1, 33), {"'b'", "offset 33", "alignment 32"});
  check_refused(with_offset(2, 128), {"'c'", "offset 128", "expected 96"});
  check_refused(with_offset(2, UINT64_MAX - 31), {"'c'", "offset 18446744073709551584"});
}

TEST_CASE("gguf/reader: refuses duplicate and empty and long and ill-formed tensor names", "[gguf]") {
  const auto with_names = [](std::string first, std::string second) {
    GgufWriter w;
    w.tensor(first, GgufWriter::kF32, {1}, "aaaa").tensor(second, GgufWriter::kF32, {1}, "bbbb");
    return w;
  };
  check_refused(with_names("output.weight", "output.weight"), {"'output.weight'", "twice"});
  check_refused(with_names("x", ""), {"tensor 2 of 2", "empty"});
  check_refused(with_names(std::string(68, 'n') + ".1", std::string(68, 'n') + ".2"), {"tensor 1 of 2", "70 bytes", "63"});
  check_refused(with_names("x", "\xc3"), {"tensor 2 of 2", "\\xc3", "UTF-8"});
  CHECK(parse_file(view(with_names(std::string(63, 'n'), std::string(62, 'n')).bytes())).ok());
}
