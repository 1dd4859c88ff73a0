#include "gguf/split_files.hpp"

#include <catch2/catch.hpp>

#include "gguf/model_file.hpp"
#include "support/gguf_writer.hpp"

using namespace minfer;
using namespace minfer::gguf;
using minfer::test::GgufWriter;
using minfer::test::TempDir;

namespace {

constexpr int kParts = 3;

// One model of three parts: two tensors in the first, one in each other; the first has the model's keys.
struct SplitModel {
  SplitModel() {
    for (int i = 0; i < kParts; ++i) {
      parts[i].set("split.no", static_cast<uint16_t>(i)).set("split.count", uint16_t{kParts}).set("split.tensors.count", int32_t{4});
      parts[i].set("general.architecture", "llama");
    }
    parts[0].set("llama.block_count", uint32_t{7});
    parts[0].tensor("a", GgufWriter::kF32, {1}, "aaaa").tensor("b", GgufWriter::kF32, {1}, "bbbb");
    parts[1].tensor("c", GgufWriter::kF32, {1}, "cccc");
    parts[2].tensor("d", GgufWriter::kF32, {1}, "dddd");
  }
  std::filesystem::path path(int part) const { return dir.path() / split_file_name("model", part + 1, kParts); }
  Result<ModelFile> open(int part = 0) const {
    for (int i = 0; i < kParts; ++i)
      if (i != missing) parts[i].write(path(i));
    return open_model_file(path(part));
  }
  void check_refused(std::initializer_list<std::string> words, int part = 0) const {
    const auto model = open(part);
    REQUIRE_FALSE(model.ok());
    for (const std::string& word : words) CHECK_THAT(model.error().text, Catch::Contains(word));
  }
  TempDir dir;
  GgufWriter parts[kParts];
  int missing = -1;
};

std::string data_of(const Tensor* tensor) { return {reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()}; }

}  // namespace

TEST_CASE("gguf/split_files: names of parts are recognised and remade", "[gguf]") {
  const auto name = parse_split_name("qwen-72b-00002-of-00031.gguf");
  REQUIRE(name);
  CHECK(name->prefix == "qwen-72b");
  CHECK(name->number == 2);
  CHECK(name->count == 31);
  CHECK(split_file_name(name->prefix, 2, 31) == "qwen-72b-00002-of-00031.gguf");
  for (const char* other : {"model.gguf", "m-0001-of-00002.gguf", "m-00003-of-00002.gguf", "m-00000-of-00002.gguf", "m-00001-of-00002.bin",
                            "m_00001-of-00002.gguf", "m-00001-of-0000x.gguf", "m-+0001-of-00002.gguf", "-00001-of-00002.gguf", ""}) {
    INFO(other);
    CHECK_FALSE(parse_split_name(other));
  }
}

TEST_CASE("gguf/split_files: opening part 1 opens all parts as one model", "[gguf]") {
  const SplitModel split;
  auto opened = split.open();
  REQUIRE(opened.ok());
  const ModelFile model = std::move(*opened);
  CHECK(model.part_count() == 3);
  CHECK(model.tensors().size() == 4);
  CHECK(data_of(model.tensors().find("b")) == "bbbb");
  CHECK(data_of(model.tensors().find("c")) == "cccc");
  CHECK(data_of(model.tensors().find("d")) == "dddd");
  CHECK(*model.metadata().u64("llama.block_count") == 7);
  CHECK(model.total_bytes() == split.parts[0].bytes().size() + split.parts[1].bytes().size() + split.parts[2].bytes().size());
}

TEST_CASE("gguf/split_files: keys that only a later part has are found and alignment may differ", "[gguf]") {
  SplitModel split;
  split.parts[2].alignment = 64;
  split.parts[2].set("general.alignment", uint32_t{64}).set("extra", "late");
  split.parts[1].set("general.alignment", uint32_t{32});
  const auto model = split.open();
  REQUIRE(model.ok());
  CHECK(*model->metadata().string("extra") == "late");
  CHECK(data_of(model->tensors().find("d")) == "dddd");
}

TEST_CASE("gguf/split_files: an entry that is not part 1 is refused with the path of part 1", "[gguf]") {
  const SplitModel split;
  split.check_refused({split.path(1).string() + ": ", "part 2 of 3", split.path(0).string()}, 1);
}

TEST_CASE("gguf/split_files: a missing part is refused by its path", "[gguf]") {
  SplitModel split;
  split.missing = 2;
  split.check_refused({"part 3 of 3", split.path(2).string(), "No such file"});
}

TEST_CASE("gguf/split_files: parts that do not belong together are refused with file and key", "[gguf]") {
  SplitModel split;
  SECTION("another number") {
    split.parts[1] = GgufWriter();
    split.parts[1].set("split.no", uint16_t{2}).set("split.count", uint16_t{3}).tensor("c", GgufWriter::kF32, {1}, "cccc");
    split.check_refused({split.path(1).string(), "split.no is 2", "part 2"});
  }
  SECTION("another count") {
    split.parts[1] = GgufWriter();
    split.parts[1].set("split.no", uint16_t{1}).set("split.count", uint16_t{4});
    split.check_refused({split.path(1).string(), "split.count is 4", "3 parts"});
  }
  SECTION("no split keys") {
    split.parts[1] = GgufWriter();
    split.check_refused({split.path(1).string(), "'split.count'", "missing"});
  }
  SECTION("another architecture") {
    split.parts[1] = GgufWriter();
    split.parts[1].set("split.no", uint16_t{1}).set("split.count", uint16_t{3}).set("general.architecture", "qwen2");
    split.check_refused({split.path(1).string(), "'general.architecture'", "different models"});
  }
  SECTION("a tensor twice") {
    split.parts[2].tensor("b", GgufWriter::kF32, {1}, "BBBB");
    split.check_refused({split.path(2).string(), "'b'"});
  }
  SECTION("another number of tensors") {
    split.parts[2].tensor("e", GgufWriter::kF32, {1}, "eeee");
    split.check_refused({"split.tensors.count is 4", "5 tensors"});
  }
  SECTION("a broken part") {
    split.parts[2].version = 1;
    split.check_refused({"part 3 of 3", split.path(2).string(), "version 1"});
  }
}

TEST_CASE("gguf/split_files: a name and split.count that disagree are refused", "[gguf]") {
  TempDir dir;
  GgufWriter part, whole;
  part.set("split.no", uint16_t{0}).set("split.count", uint16_t{2}).set("split.tensors.count", int32_t{0});
  part.write(dir.path() / "renamed.gguf");
  whole.write(dir.path() / "whole-00001-of-00002.gguf");
  CHECK_THAT(open_model_file(dir.path() / "renamed.gguf").error().text,
             Catch::Contains("split.count is 2") && Catch::Contains("renamed-00001-of-00002.gguf"));
  CHECK_THAT(open_model_file(dir.path() / "whole-00001-of-00002.gguf").error().text,
             Catch::Contains("part 1 of 2") && Catch::Contains("split.count is 1"));
}
