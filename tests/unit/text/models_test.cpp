// The vocabularies of two real models: golden ids, exact ids on record for known trouble spots, work on long unbroken runs.
#include <catch2/catch.hpp>

#include "gguf/model_file.hpp"
#include "golden.hpp"
#include "support/sha256.hpp"
#include "support/support.hpp"

using namespace minfer;
using Ids = std::vector<TokenId>;

namespace {
Tokenizer open_tokenizer(std::string_view model) {
  const auto file = gguf::open_model_file(test::model_file(model));
  if (!file.ok()) FAIL(file.error().text);
  const gguf::Metadata& metadata = file->metadata();
  VocabularySource source;
  source.model = *metadata.string("tokenizer.ggml.model");
  source.pre = *metadata.string("tokenizer.ggml.pre");
  const gguf::StringArray tokens = *metadata.strings("tokenizer.ggml.tokens");
  const gguf::StringArray merges = *metadata.strings("tokenizer.ggml.merges");
  const gguf::IntArray types = *metadata.ints("tokenizer.ggml.token_type");
  source.tokens.assign(tokens.begin(), tokens.end());
  source.merges.assign(merges.begin(), merges.end());
  for (size_t i = 0; i < types.size(); ++i) source.token_types.push_back(types[i]);
  source.bos = *metadata.u32("tokenizer.ggml.bos_token_id");
  source.eos = *metadata.u32("tokenizer.ggml.eos_token_id");
  source.add_bos = *metadata.boolean("tokenizer.ggml.add_bos_token");
  auto tokenizer = Tokenizer::create(source);
  if (!tokenizer.ok()) FAIL(tokenizer.error().text);
  return std::move(tokenizer).value();
}

std::string repeated(std::string_view unit, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += unit;
  return text;
}

// First 16 hex digits of the SHA-256 of the ids as little-endian 32-bit numbers.
std::string hash_of(const Ids& ids) {
  return test::sha256_hex({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId)}).substr(0, 16);
}
}  // namespace

TEST_CASE("text/tokenizer: the vocabulary of Qwen2.5-Coder-0.5B gives the golden ids", "[text][model]") {
  const Tokenizer tokenizer = open_tokenizer(test::kQwen2Model);
  CHECK(tokenizer.vocabulary().size() == 151'936);
  CHECK(tokenizer.is_end_of_generation(151'645));
  CHECK(test::check_golden(tokenizer, "qwen2", true) == 360);
}

TEST_CASE("text/tokenizer: the vocabulary of SmolLM2-135M gives the golden ids", "[text][model]") {
  const Tokenizer tokenizer = open_tokenizer(test::kSmolLm2Model);
  CHECK(tokenizer.vocabulary().size() == 49'152);
  CHECK(tokenizer.is_end_of_generation(2));
  CHECK(test::check_golden(tokenizer, "smollm2", false) == 356);
}

// Ids on record from two other implementations.
TEST_CASE("text/tokenizer: new lines, digits, contractions and rare spaces have exact ids", "[text][model]") {
  const Tokenizer tokenizer = open_tokenizer(test::kQwen2Model);
  const auto ids = [&](std::string_view text) { return *tokenizer.encode(text); };
  CHECK(ids("\n\n") == Ids{271});
  CHECK(ids("\n\n\n") == Ids{1406});
  CHECK(ids("\n\n\n\n") == Ids{1022});
  CHECK(ids("a \n b") == Ids{64, 715, 293});
  CHECK(ids("a   b") == Ids{64, 256, 293});
  CHECK(ids("\t\ta") == Ids{197, 11323});
  CHECK(ids("a\r\nb") == Ids{64, 319, 65});
  CHECK(ids("What is 3333+777?") == Ids{3838, 374, 220, 18, 18, 18, 18, 10, 22, 22, 22, 30});
  CHECK(ids("I'VE it's WE'LL y'all's 'S 's don'T") ==
        Ids{40, 6, 4491, 432, 594, 19677, 6, 4086, 379, 64848, 594, 364, 50, 364, 82, 1513, 17323});
  CHECK(ids("\xE2\x80\xA9 \xEA\x8F\xA4") == Ids{378, 102, 8620, 237, 97});
  CHECK(ids("Hello world! Caf\xC3\xA9 d\xC3\xA9j\xC3\xA0 vu \xE2\x80\x94 123 \xF0\x9F\x98\x8A") ==
        Ids{9707, 1879, 0, 65671, 45839, 32514, 1959, 220, 16, 17, 18, 26525, 232});
  CHECK(*tokenizer.encode("<|im_start|>assistant\n\n", {.parse_special = true}) == Ids{151644, 77091, 271});
  CHECK(ids("Cafe\xCC\x81") == Ids{34, 2577, 963});  // NFC, as the model's own tokenizer
  CHECK(ids("Caf\xC3\xA9") == Ids{34, 2577, 963});
}

TEST_CASE("text/tokenizer: bytes that are not UTF-8 have exact ids and come back unchanged", "[text][model]") {
  const Tokenizer tokenizer = open_tokenizer(test::kQwen2Model);
  const std::pair<const char*, Ids> cases[] = {
      {"e6ad", {15362}}, {"e6adaa", {107687}}, {"ff", {187}}, {"c328", {127, 7}}, {"eda080", {169, 63219}}};
  for (const auto& [hex, expected] : cases) {
    const std::string bytes = test::from_hex(hex);
    const Ids ids = *tokenizer.encode(bytes);
    CHECK(ids == expected);
    CHECK(*tokenizer.decode(ids) == bytes);
  }
}

TEST_CASE("text/tokenizer: long unbroken runs have exact ids and work grows in step with their length", "[text][model]") {
  const Tokenizer tokenizer = open_tokenizer(test::kQwen2Model);
  const struct {
    const char* unit;
    size_t count, n_ids;
    const char* hash;
  } runs[] = {{"A", 43'000, 5375, "104d89f298e2e4ce"}, {" ", 26'000, 204, "ffd8c0c43d95b7b6"},
              {"\n", 26'000, 813, "6442b3561de9e7f7"}, {"_", 50'000, 782, "773e3ea2ad7047fd"},
              {".", 30'000, 470, "e8158ccadf563fc0"},  {"\xE5\xA5\xBD", 30'000, 15'000, "aab43b8f1ed3d9f2"}};
  for (const auto& run : runs) {
    CAPTURE(run.unit);
    uint64_t steps = 0, steps_of_8 = 0;
    const auto ids = tokenizer.encode(repeated(run.unit, run.count), {}, &steps);
    CHECK(ids->size() == run.n_ids);
    CHECK(hash_of(*ids) == run.hash);
    const auto ids_of_8 = tokenizer.encode(repeated(run.unit, 8 * run.count), {}, &steps_of_8);
    CHECK(steps >= run.count);
    CHECK(steps_of_8 <= 12 * steps);
    CHECK(*tokenizer.decode(*ids_of_8) == repeated(run.unit, 8 * run.count));
  }
}
