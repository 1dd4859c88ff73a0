// Files that other runtimes were reported to stumble over, as whole models through minfer-run: a refusal in one line or the right text.
#include <catch2/catch.hpp>
#include <chrono>

#include "cases/programs/fixture_run.hpp"

using namespace minfer::test;

namespace {

std::string u32(uint32_t value) { return GgufWriter::raw(value); }
std::string u64(uint64_t value) { return GgufWriter::raw(value); }
std::string times(const std::string& unit, size_t n) {
  std::string out;
  out.reserve(unit.size() * n);
  for (size_t i = 0; i < n; ++i) out += unit;
  return out;
}

std::string text_of(const FixtureModel& model, const std::string& prompt = "ABC") { return FixtureRun(model).greedy({prompt}); }

}  // namespace

TEST_CASE("cases: lengths and counts beyond the end of a small file are refused at once and without memory") {
  const std::string deep = times(u32(9) + u64(1), 100000);
  const struct {
    const char* what;
    std::string bytes;
    std::vector<std::string> words;
  } files[] = {
      {"a key of 2^32 - 1 bytes", "GGUF" + u32(3) + u64(0) + u64(1) + u64(0xFFFFFFFF), {"key count", "offset 16", "only 8 bytes"}},
      {"500 million keys", "GGUF" + u32(3) + u64(0) + u64(0x1DCD6500), {"key count", "offset 16", "500000000"}},
      {"2^62 tensors", "GGUF" + u32(3) + u64(uint64_t{1} << 62) + u64(0), {"tensor count", "offset 8", "4611686018427387904"}},
      {"an array of 2^60 values",
       "GGUF" + u32(3) + u64(0) + u64(1) + u64(1) + "a" + u32(9) + u32(4) + u64(uint64_t{1} << 60),
       {"'a'", "1152921504606846976"}},
      {"100000 nested arrays",
       "GGUF" + u32(3) + u64(0) + u64(1) + u64(1) + "a" + u32(9) + deep + u32(4) + u64(1) + u32(0),
       {"'a'", "array"}},
      {"big-endian", "GGUF" + std::string("\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1", 20) + std::string(64, '\0'), {"byte order"}},
  };
  for (const auto& file : files) {
    INFO(file.what);
    const TempDir dir;
    const auto path = (dir.path() / "broken.gguf").string();
    write_file(path, file.bytes);
    const auto start = std::chrono::steady_clock::now();
    // 200 MB of address space hold the program and its libraries, and no table of that size.
    const auto result = run_limited(200000, "-q -m " + path + " x");
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    std::vector<std::string> words = file.words;
    words.push_back("broken.gguf");
    check_refused(result, words);
  }
}

TEST_CASE("cases: a tensor type that nothing computes is refused with tensor and type") {
  // IQ4_XS: rows of 512 are two blocks of 136 bytes. Well formed, so it is the model that must be refused, not the file.
  const FixtureRun run(abc_model());
  std::string bytes = read_file(run.path());
  const std::string name = "output.weight";
  const size_t record = bytes.find(GgufWriter::raw_string(name));
  REQUIRE(record != std::string::npos);
  const size_t type = record + 8 + name.size() + 4 + 16;  // length, name, n_dims, two dims
  for (const auto& [id, words] : std::vector<std::pair<uint32_t, std::vector<std::string>>>{{4, {"Q4_2", "id 4"}},
                                                                                            {5, {"Q4_3", "id 5"}},
                                                                                            {31, {"Q4_0_4_4", "id 31"}},
                                                                                            {36, {"IQ4_NL_4_4", "id 36"}},
                                                                                            {23, {"IQ4_XS"}},
                                                                                            {39, {"MXFP4"}},
                                                                                            {4242, {"type id 4242"}}}) {
    INFO(id);
    bytes.replace(type, 4, u32(id));  // it is the last tensor: a type that needs fewer bytes leaves some behind
    write_file(run.path(), bytes);
    auto expected = words;
    expected.push_back("output.weight");
    check_refused(run.run({"ABC"}), expected);
  }
}

TEST_CASE("cases: every alignment of the format gives the same text") {
  for (const uint32_t alignment : {32u, 64u, 4096u}) {
    INFO(alignment);
    FixtureModel model = abc_model();
    model.alignment = alignment;
    model.set("general.alignment", alignment);
    CHECK(text_of(model) == kAbcText);
  }
  FixtureModel signed_key = abc_model();
  signed_key.alignment = 64;
  signed_key.set("general.alignment", int32_t{64});
  CHECK(text_of(signed_key) == kAbcText);
  for (const auto& [value, word] :
       std::vector<std::pair<uint32_t, std::string>>{{0, "is 0"}, {3, "is 3"}, {48, "is 48"}, {0x80000000, "is 2147483648"}}) {
    FixtureModel model = abc_model();
    model.set("general.alignment", value);
    check_refused(FixtureRun(model).run({"ABC"}), {"'general.alignment'", word});
  }
  FixtureModel text = abc_model();
  text.set("general.alignment", std::string("32"));
  check_refused(FixtureRun(text).run({"ABC"}), {"'general.alignment'", "string"});
}

TEST_CASE("cases: a file without an output matrix uses the embedding") {
  for (const char* arch : {"llama", "qwen2"}) {
    FixtureModel model = abc_model(arch);
    model.drop_tensor("output.weight");
    CHECK(FixtureRun(model).greedy({"-n", "4", "xyq"}) == "qqqq");  // the row most like the current token is its own
  }
}

TEST_CASE("cases: token types of another integer type are taken and a repeated token text is allowed") {
  FixtureModel small_types = abc_model();
  small_types.set("tokenizer.ggml.token_type", std::vector<uint8_t>(small_types.token_types.begin(), small_types.token_types.end()));
  CHECK(text_of(small_types) == kAbcText);
  FixtureModel repeated = chain_model("llama", {'X', kLlo});
  repeated.tokens[270] = "llo";
  CHECK(text_of(repeated, "X") == "llo");
}

TEST_CASE("cases: hyper-parameters that cannot be are refused with key and value") {
  const struct {
    const char* key;
    uint32_t value;
    const char* words;
  } cases[] = {{"attention.head_count", 0, "llama.attention.head_count is 0"},
               {"attention.head_count_kv", 0, "llama.attention.head_count_kv is 0"},
               {"attention.head_count", 7, "llama.attention.head_count 7 is not divisible"},
               {"attention.head_count_kv", 3, "llama.attention.head_count_kv 3"},
               {"block_count", 0, "llama.block_count is 0"},
               {"context_length", 0, "llama.context_length is 0"}};
  for (const auto& c : cases) {
    FixtureModel model = abc_model();
    model.set(std::string("llama.") + c.key, c.value);
    check_refused(FixtureRun(model).run({"ABC"}), {c.words, "model.gguf"});
  }
  FixtureModel scaled = abc_model();
  scaled.set("llama.rope.scaling.type", std::string("ya\nrn\x1b[31m"));
  check_refused(FixtureRun(scaled).run({"ABC"}), {"llama.rope.scaling.type", "\\x1b"});
}

TEST_CASE("cases: rows of odd widths give the right text in every weight type") {
  const auto check = [](uint64_t width, std::initializer_list<Storage> types) {
    for (const Storage storage : types) {
      INFO(width << " " << storage_name(storage));
      FixtureModel model = abc_model("llama", width);
      model.tensor("output.weight").storage = storage;
      const FixtureRun run(model);
      for (const char* threads : {"1", "2", "3"}) CHECK(run.greedy({"-t", threads, "ABC"}) == kAbcText);
    }
  };
  using enum Storage;
  for (const uint64_t width : {288, 352, 416, 544, 608}) check(width, {kF32, kF16, kBf16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1});
  for (const uint64_t width : {768, 1280}) check(width, {kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K});  // whole super-blocks of 256
}
