// The malformed set at the level of a model: what is refused when it is loaded, in which words, and what runs all the same.
#include <catch2/catch.hpp>
#include <map>

#include "cases/files/try_model.hpp"
#include "runtime/perplexity.hpp"
#include "support/malformed.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

// Words of the refusal, for defects that are not the container's: tests/unit/gguf has the words of those.
const std::map<std::string, std::string> kRefused = {
    {"tensor_count_zero", "token_embd.weight"},
    {"arch_missing", "general.architecture"},
    {"arch_unknown", "general.architecture is 'frobnicate'"},
    {"arch_wrong_type", "general.architecture"},
    {"missing_block_count", "llama.block_count"},
    {"missing_embedding_length", "llama.embedding_length"},
    {"missing_feed_forward_length", "llama.feed_forward_length"},
    {"missing_attention_head_count", "llama.attention.head_count"},
    {"missing_attention_layer_norm_rms_epsilon", "llama.attention.layer_norm_rms_epsilon"},
    {"missing_context_length", "llama.context_length"},
    {"wrong_type_block_count_string", "llama.block_count"},
    {"wrong_type_head_count_f32", "llama.attention.head_count"},
    {"wrong_type_embedding_array", "llama.embedding_length"},
    {"wrong_type_eps_string", "llama.attention.layer_norm_rms_epsilon"},
    {"zero_layers", "llama.block_count is 0"},
    {"two_layers_claimed", "llama.block_count is 2, but the file has no blk.1."},
    {"huge_layers", "llama.block_count is 2147483647"},
    {"head_count_0", "llama.attention.head_count is 0"},
    {"head_count_kv_0", "llama.attention.head_count_kv is 0"},
    {"head_count_not_divisible_by_kv", "llama.attention.head_count 2 is not divisible by llama.attention.head_count_kv 3"},
    {"embd_not_divisible_by_heads", "llama.embedding_length 32 is not divisible by llama.attention.head_count 3"},
    {"head_count_huge", "llama.attention.head_count is 4294967295"},
    {"embedding_length_0", "llama.embedding_length is 0"},
    {"embedding_length_mismatch", "llama.embedding_length is 64"},
    {"rope_dim_odd", "llama.rope.dimension_count is 15"},
    {"rope_dim_too_large", "llama.rope.dimension_count is 64"},
    {"context_length_0", "llama.context_length is 0"},
    {"eps_nan", "llama.attention.layer_norm_rms_epsilon is nan"},
    {"rope_base_zero", "llama.rope.freq_base is 0"},
    {"missing_tensor", "blk.0.attn_k.weight"},
    {"missing_output_norm", "output_norm.weight"},
    {"wrong_shape_transposed", "blk.0.ffn_down.weight"},
    {"wrong_shape_norm", "blk.0.attn_norm.weight"},
    {"wrong_shape_3d", "blk.0.attn_q.weight"},
    {"tokens_missing", "tokenizer.ggml.tokens"},
    {"tokens_empty", "tokenizer.ggml.tokens"},
    {"tokens_short", "tokenizer.ggml.bos_token_id is 300, but the vocabulary has 300 tokens"},
    {"tokens_long", "315 tokens, token_embd.weight has 307 rows"},
    {"tokens_are_ints", "tokenizer.ggml.tokens"},
    {"token_type_short", "tokenizer.ggml.token_type has 10 entries"},
    {"merges_no_space", "tokenizer.ggml.merges[0]"},
    {"merges_empty_string", "tokenizer.ggml.merges[0]"},
    {"merges_unknown_pieces", "tokenizer.ggml.merges[0]"},
    {"merges_result_not_token", "tokenizer.ggml.merges[0]"},
    {"merges_missing", "tokenizer.ggml.merges"},
    {"eos_out_of_range", "tokenizer.ggml.eos_token_id is 307"},
    {"bos_max", "tokenizer.ggml.bos_token_id is 4294967295"},
    {"tokenizer_model_unknown", "tokenizer.ggml.model is 'frob'"},
    {"tokenizer_pre_unknown", "tokenizer.ggml.pre is 'frob'"},
};

// Loads, and the run ends with these words: the file is what it says it is, its numbers are not.
const std::map<std::string, std::string> kFailsWhenRun = {
    {"nan_norm_weight", "not finite"},
    {"inf_block_scale", "not finite"},
    {"nan_block_scale", "not a number"},  // the tied row of token 0 alone, so it shows in its logit
};

// Nothing is wrong with these, or the defect has one sound reading.
const std::vector<std::string> kLoads = {"base_ok", "version_2_ok", "other_int_type_ok", "trailing_garbage_ok", "tokens_duplicate"};

std::string stem(const std::string& file) { return file.substr(0, file.rfind('.')); }

}  // namespace

TEST_CASE("cases/files: the perplexity of a model with a broken weight is an error and no number") {
  const TempDir dir;
  write_file(dir.path() / "model.gguf", malformed_file("nan_block_scale.gguf").bytes);
  const ModelOnCpu model(dir.path() / "model.gguf");
  const auto session = model.session(16);
  const std::vector<int32_t> tokens = {40, 41, 42, 43, 44, 45, 46, 47};
  const auto result = perplexity(*session, tokens, 8, 8, {});
  REQUIRE_FALSE(result.ok());
  CHECK_THAT(result.error().text, Catch::Contains("position 4") && Catch::Contains("not finite"));
}

TEST_CASE("cases/files: every malformed model is refused by name or runs as its defect allows") {
  ModelTrier trier;
  size_t by_container = 0, named = 0;
  for (const MalformedFile& file : malformed_files()) {
    INFO(file.file << ": " << file.defect);
    const std::string name = stem(file.file);
    const Outcome outcome = trier.try_bytes(file.bytes, 3, 4);
    INFO(outcome.error);
    CHECK(outcome.error.find('\n') == std::string::npos);
    CHECK(outcome.error.size() < 600);
    if (const auto run = kFailsWhenRun.find(name); run != kFailsWhenRun.end()) {
      CHECK(outcome.ended == Ended::kRunning);
      CHECK_THAT(outcome.error, Catch::Contains(run->second));
      ++named;
    } else if (std::find(kLoads.begin(), kLoads.end(), name) != kLoads.end()) {
      CHECK(file.expect != "reject");
      CHECK(outcome.ended == Ended::kDone);
      ++named;
    } else {
      CHECK(file.expect != "accept");
      CHECK(outcome.ended == Ended::kLoading);
      CHECK_THAT(outcome.error, Catch::Contains("model.gguf"));
      if (const auto refused = kRefused.find(name); refused != kRefused.end()) {
        CHECK_THAT(outcome.error, Catch::Contains(refused->second));
        ++named;
      } else {
        ++by_container;
      }
    }
  }
  // A name in a table above that is no file would silently test nothing.
  CHECK(named == kRefused.size() + kFailsWhenRun.size() + kLoads.size());
  CHECK(by_container == malformed_files().size() - named);
}
