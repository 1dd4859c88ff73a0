#include "text/bpe.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "golden.hpp"

using namespace minfer;

namespace {
// The definition, word for word: look at all pairs, merge the leftmost of the lowest rank, start again.
std::vector<TokenId> merge_by_definition(const Vocabulary& v, std::string_view piece) {
  std::vector<TokenId> ids;
  for (const char c : piece) ids.push_back(v.byte_token(static_cast<uint8_t>(c)));
  for (;;) {
    size_t best = 0;
    uint32_t rank = Vocabulary::kNoMerge;
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      if (const uint32_t r = v.merge(ids[i], ids[i + 1]).rank; r < rank) {
        rank = r;
        best = i;
      }
    if (rank == Vocabulary::kNoMerge) return ids;
    ids[best] = v.merge(ids[best], ids[best + 1]).result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Merges that overlap and chain, so that the order matters everywhere.
Vocabulary tangled_vocabulary() {
  test::OwnedVocabulary source = test::byte_vocabulary();
  source.merges.clear();
  std::map<std::string, bool> known{{"ab", true}};
  const auto add = [&](const std::string& left, const std::string& right) {
    source.merges.push_back(left + " " + right);
    if (!known[left + right]) source.add(left + right, TokenType::kNormal);
    known[left + right] = true;
  };
  add("b", "a");
  add("a", "a");
  add("aa", "aa");
  add("a", "b");
  add("ab", "ba");
  add("b", "b");
  add("bb", "aa");
  add("aaaa", "b");
  add("ba", "bb");
  add("ba", "ba");  // before the next one, which a forgotten entry of "a b" would apply too early
  add("a", "ba");
  auto vocabulary = Vocabulary::build(source.source());
  REQUIRE(vocabulary.ok());
  return std::move(vocabulary).value();
}
}  // namespace

TEST_CASE("text/bpe: short and long pieces merge as the definition says", "[text]") {
  const Vocabulary v = tangled_vocabulary();
  BpeMerger merger(v);
  std::mt19937 random(7);
  for (size_t size = 0; size <= 120; ++size) {
    for (int repeat = 0; repeat < 10; ++repeat) {
      std::string piece;
      for (size_t i = 0; i < size; ++i) piece += "aab"[random() % 3];
      if (repeat == 0) piece.assign(size, 'a');
      std::vector<TokenId> ids;
      merger.encode(piece, ids);
      CAPTURE(piece);
      CHECK(ids == merge_by_definition(v, piece));
    }
  }
}

TEST_CASE("text/bpe: work grows in step with the length of one piece", "[text]") {
  const Vocabulary v = tangled_vocabulary();
  const auto steps = [&](size_t size) {
    BpeMerger merger(v);
    std::vector<TokenId> ids;
    merger.encode(std::string(size, 'a'), ids);
    CHECK(ids.size() == size / 4);
    return merger.steps();
  };
  const uint64_t small = steps(40'000), large = steps(320'000);
  CHECK(small >= 40'000);
  CHECK(large <= 12 * small);
}

TEST_CASE("text/bpe: a byte without a token is dropped, on short and long pieces", "[text]") {
  test::OwnedVocabulary source = test::byte_vocabulary();
  source.tokens[0xFF] = "~missing~";
  const auto v = Vocabulary::build(source.source());
  REQUIRE(v.ok());
  CHECK(v->byte_token(0xFF) == kNoToken);
  BpeMerger merger(*v);
  std::vector<TokenId> ids;
  merger.encode(
      "a\xFF"
      "b",
      ids);
  CHECK(ids == std::vector<TokenId>{'a', 'b'});  // no merge across the gap
  ids.clear();
  merger.encode(std::string(50, '\xFF') + "ab", ids);
  CHECK(ids == std::vector<TokenId>{256});
}
