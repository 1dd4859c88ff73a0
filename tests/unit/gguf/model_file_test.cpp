#include "gguf/model_file.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "support/gguf_writer.hpp"

using namespace minfer;
using namespace minfer::gguf;
using minfer::test::GgufWriter;
using minfer::test::TempDir;
using minfer::test::write_file;

TEST_CASE("gguf/model_file: a directory is answered with commands for the models in it", "[gguf]") {
  TempDir dir;
  const auto models = dir.path() / "my models";
  std::filesystem::create_directories(models / "folder.gguf");
  for (const char* name : {"b.gguf", "it's.gguf", "notes.txt", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"})
    write_file(models / name, "x");
  const auto opened = open_model_file(models);
  REQUIRE_FALSE(opened.ok());
  const std::string at = models.string();
  CHECK(opened.error().text == "'" + at + "' is a directory; models in it:\n  minfer-run -m '" + at + "/b.gguf'\n  minfer-run -m '" + at +
                                   "/it'\\''s.gguf'\n  minfer-run -m '" + at + "/s-00001-of-00002.gguf'");
  CHECK_THAT(open_model_file(models / "folder.gguf").error().text, Catch::Contains("without .gguf files"));
}

TEST_CASE("gguf/model_file: errors of a file name its path", "[gguf]") {
  TempDir dir;
  const auto path = dir.path() / "m.gguf";
  CHECK(open_model_file(path).error().code == ErrorCode::kNotFound);
  write_file(path, "");
  CHECK_THAT(open_model_file(path).error().text, Catch::Contains("empty") && Catch::Contains(path.string()));
  GgufWriter w;
  w.version = 9;
  w.write(path);
  CHECK_THAT(open_model_file(path).error().text, Catch::StartsWith(path.string() + ": header: GGUF version 9"));
}

TEST_CASE("gguf/model_file: views outlive a move of the model and dropped pages read back", "[gguf]") {
  TempDir dir;
  GgufWriter w;
  const std::string data(1 << 16, 'd');
  w.set("general.architecture", "llama").tensor("t", GgufWriter::kF32, {1 << 14}, data);
  w.write(dir.path() / "m.gguf");
  auto opened = open_model_file(dir.path() / "m.gguf");
  REQUIRE(opened.ok());
  const Tensor* tensor = opened->tensors().find("t");
  const auto bytes = tensor->bytes;
  const ModelFile model = std::move(*opened);
  CHECK(model.tensors().find("t")->bytes.data() == bytes.data());
  model.drop_pages(bytes);
  const std::byte elsewhere{};
  model.drop_pages({&elsewhere, 1});  // not of this model: nothing happens
  CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == data);
}

TEST_CASE("gguf/model_file: reads the Qwen2.5 model file", "[gguf]") {
  const auto model = open_model_file(test::model_file(test::kQwen2Model));
  REQUIRE(model.ok());
  CHECK(model->total_bytes() == 491400064);
  CHECK(*model->metadata().string("general.architecture") == "qwen2");
  CHECK(*model->metadata().u64("qwen2.block_count") == 24);
  CHECK(model->metadata().strings("tokenizer.ggml.tokens")->size() == 151936);
  std::map<std::string_view, int> types;
  for (const Tensor& tensor : model->tensors()) ++types[type_name(tensor.type)];
  CHECK(types["Q5_0"] == 133);
  CHECK(types["Q6_K"] == 12);
  CHECK(types["Q8_0"] == 13);
  CHECK(types["Q4_K"] == 12);
  const Tensor* embedding = model->tensors().find("token_embd.weight");
  REQUIRE(embedding);
  CHECK(embedding->dims == std::array<uint64_t, 4>{896, 151936, 1, 1});
  CHECK(embedding->bytes.size() == uint64_t{896} / 32 * 22 * 151936);
}

TEST_CASE("gguf/model_file: reads the SmolLM2 model file to its last byte", "[gguf]") {
  const auto model = open_model_file(test::model_file(test::kSmolLm2Model));
  REQUIRE(model.ok());
  CHECK(*model->metadata().string("general.architecture") == "llama");
  CHECK(*model->metadata().u64("llama.block_count") == 30);
  uint64_t padded = 0;
  const std::byte* start = model->tensors()[0].bytes.data();
  const Tensor& last = model->tensors()[model->tensors().size() - 1];
  for (const Tensor& tensor : model->tensors()) {
    CHECK(tensor.bytes.data() == start + padded);
    padded += (tensor.bytes.size() + 31) / 32 * 32;
  }
  CHECK(last.bytes.data() + last.bytes.size() <= start + padded);
  CHECK(model->total_bytes() == 98362432);
}
