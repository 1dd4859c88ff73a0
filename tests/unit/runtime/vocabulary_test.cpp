// What runtime reads of a file's vocabulary beyond copying its keys.
#include <catch2/catch.hpp>

#include "gguf/model_file.hpp"
#include "runtime/gguf_metadata.hpp"
#include "support/gguf_writer.hpp"

using namespace minfer;
using namespace minfer::test;

TEST_CASE("runtime/vocabulary: BOS goes in front where the file says so or leaves it to a pre-tokenizer that does", "[runtime]") {
  const TempDir temp;
  const auto file = temp.path() / "x.gguf";
  const auto add_bos = [&](const std::string& pre, std::optional<bool> key, bool has_bos = true) {
    GgufWriter w;
    w.set("general.architecture", "x").set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", pre);
    w.set("tokenizer.ggml.tokens", std::vector<std::string>{"a"});
    if (has_bos) w.set("tokenizer.ggml.bos_token_id", uint32_t{0});
    if (key) w.set("tokenizer.ggml.add_bos_token", *key);
    w.tensor("w", GgufWriter::kF32, {32}, std::string(128, '\0'));
    w.write(file);
    const auto opened = gguf::open_model_file(file);
    if (!opened.ok()) FAIL(opened.error().text);
    const auto vocabulary = read_vocabulary(opened->metadata());
    if (!vocabulary.ok()) FAIL(vocabulary.error().text);
    return vocabulary->add_bos;
  };
  CHECK(add_bos("llama-bpe", std::nullopt));
  CHECK_FALSE(add_bos("llama-bpe", false));
  CHECK_FALSE(add_bos("llama-bpe", std::nullopt, false));
  CHECK_FALSE(add_bos("gpt-2", std::nullopt));
  CHECK(add_bos("gpt-2", true));
}
