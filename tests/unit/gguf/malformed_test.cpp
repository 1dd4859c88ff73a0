// The malformed set at the level of the container: which defects are the reader's to refuse, and in which words.
#include "support/malformed.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "gguf/describe.hpp"
#include "gguf/reader.hpp"

using namespace minfer;
using namespace minfer::gguf;

namespace {

// Every defect of the container with a part of the text that refuses it. A file that is not listed is well formed as a container:
// its defect, if any, is for the architecture (keys, shapes, missing tensors), the tokenizer or the numerics to judge.
const std::map<std::string, std::string> kRefusedByReader = {
    {"trunc_empty", "magic"},
    {"trunc_magic", "magic"},
    {"trunc_version", "version"},
    {"trunc_counts", "tensor count"},
    {"trunc_kv", "key count"},
    {"trunc_token_string", "'tokenizer.ggml.tokens'"},
    {"trunc_tensor_info", "truncated"},
    {"trunc_no_data", "truncated"},
    {"trunc_data_half", "truncated"},
    {"trunc_data_tail", "'output_norm.weight'"},
    {"bad_magic", "'GGML'"},
    {"not_gguf", "'This'"},
    {"version_0", "version 0"},
    {"version_1", "version 1"},
    {"version_4", "version 4"},
    {"version_4294967295", "version 4294967295"},
    {"big_endian", "byte order"},
    {"big_endian_version_only", "byte order"},
    {"kv_count_plus1", "tensor 1 of 11"},
    {"kv_count_huge", "key count"},
    {"kv_count_max", "key count"},
    {"tensor_count_plus1", "tensor 12 of 12"},
    {"tensor_count_huge", "tensor count"},
    {"tensor_count_max", "tensor count"},
    {"key_len_max", "metadata key 4 of 23"},
    {"key_len_huge", "metadata key 4 of 23"},
    {"key_empty", "empty"},
    {"key_invalid_utf8", "UTF-8"},
    {"string_len_overflow", "'x.s'"},
    {"string_len_past_end", "'x.s'"},
    {"array_len_overflow", "'x.a'"},
    {"array_len_huge", "'x.a'"},
    {"array_elem_type_unknown", "'x.a'"},
    {"value_type_unknown", "'x.v'"},
    {"value_type_huge", "'x.v'"},
    {"nested_array", "'x.a'"},
    {"nested_array_deep", "'x.a'"},
    {"bool_not_0_1", "'x.b'"},
    {"duplicate_key", "'llama.embedding_length'"},
    {"alignment_0", "'general.alignment'"},
    {"alignment_3", "'general.alignment'"},
    {"alignment_2147483648", "'general.alignment'"},
    {"dims_overflow", "'blk.0.attn_q.weight'"},
    {"dims_overflow2", "'blk.0.attn_q.weight'"},
    {"dims_zero", "'blk.0.attn_q.weight': dim 1 is 0"},
    {"dims_negative", "'blk.0.attn_q.weight'"},
    {"n_dims_5", "n_dims is 5"},
    {"n_dims_huge", "n_dims is 4294967295"},
    {"n_dims_0", "n_dims is 0"},
    {"row_not_multiple_of_block", "rows of 33"},
    {"offset_out_of_file", "'blk.0.attn_q.weight'"},
    {"offset_overflow", "'blk.0.attn_q.weight'"},
    {"offset_misaligned", "alignment 32"},
    {"offset_overlap", "'blk.0.attn_k.weight'"},
    {"last_tensor_past_end", "'output_norm.weight'"},
    {"duplicate_tensor_name", "'blk.0.attn_k.weight' appears twice"},
    {"tensor_name_too_long", "300 bytes"},
    {"tensor_name_empty", "empty"},
    {"tensor_type_unknown", "type id 99"},
    {"tensor_type_removed", "Q4_2"},
    {"tensor_type_i32", "type I32, id 26"},
    {"wrong_shape_k_rows", "'blk.0.attn_k.weight'"},  // its size shows it: the next tensor does not follow
};

std::string stem(const std::string& file) { return file.substr(0, file.rfind('.')); }

// Looks at every value and every tensor byte a later reader could look at.
uint64_t touch_everything(const FileContents& contents) {
  uint64_t sum = 0;
  for (const Value& value : contents.metadata.values()) {
    sum += describe_value(value).size();
    for (const std::byte b : value.bytes) sum += static_cast<uint8_t>(b);
  }
  for (const Tensor& tensor : contents.tensors)
    for (const std::byte b : tensor.bytes) sum += static_cast<uint8_t>(b);
  return sum;
}

}  // namespace

TEST_CASE("gguf/malformed: the set is complete and every listed name exists", "[gguf]") {
  CHECK(test::malformed_files().size() == 119);
  for (const auto& [name, words] : kRefusedByReader) CHECK(test::malformed_file(name + ".gguf").defect != "");
}

TEST_CASE("gguf/malformed: each container defect is refused by name and every other file parses", "[gguf]") {
  for (const auto& file : test::malformed_files()) {
    INFO(file.file << ": " << file.defect);
    const auto parsed = parse_file(std::as_bytes(std::span(file.bytes)));
    const auto refused = kRefusedByReader.find(stem(file.file));
    if (refused == kRefusedByReader.end()) {
      if (!parsed.ok()) FAIL_CHECK(parsed.error().text);
      if (parsed.ok()) CHECK(touch_everything(*parsed) > 0);
      continue;
    }
    CHECK(file.expect != "accept");
    REQUIRE_FALSE(parsed.ok());
    CHECK_THAT(parsed.error().text, Catch::Contains(refused->second));
    CHECK(parsed.error().text.size() < 500);
  }
}

TEST_CASE("gguf/malformed: a key of the wrong type is refused where it is asked for", "[gguf]") {
  const auto metadata_of = [](const char* name) {
    auto parsed = parse_file(std::as_bytes(std::span(test::malformed_file(name).bytes)));
    REQUIRE(parsed.ok());
    return std::move(parsed->metadata);
  };
  CHECK_FALSE(metadata_of("wrong_type_block_count_string.gguf").u64("llama.block_count").ok());
  CHECK_FALSE(metadata_of("wrong_type_head_count_f32.gguf").u64("llama.attention.head_count").ok());
  CHECK_FALSE(metadata_of("wrong_type_embedding_array.gguf").u64("llama.embedding_length").ok());
  CHECK_FALSE(metadata_of("wrong_type_eps_string.gguf").f64("llama.attention.layer_norm_rms_epsilon").ok());
  CHECK_FALSE(metadata_of("arch_wrong_type.gguf").string("general.architecture").ok());
  CHECK_FALSE(metadata_of("tokens_are_ints.gguf").strings("tokenizer.ggml.tokens").ok());
  CHECK(metadata_of("missing_block_count.gguf").u64("llama.block_count").error().code == ErrorCode::kNotFound);
  CHECK(*metadata_of("other_int_type_ok.gguf").u64("llama.block_count") == 1);
}
