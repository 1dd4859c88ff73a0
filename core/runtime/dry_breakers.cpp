#include "runtime/dry_breakers.hpp"

#include <algorithm>
#include <map>

namespace minfer {
namespace {

constexpr size_t kMaxBytes = 40, kMaxRestTokens = 20;

}  // namespace

Result<std::vector<std::vector<int32_t>>> dry_breakers(const Tokenizer& tokenizer, std::span<const std::string> texts) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  std::vector<std::vector<int32_t>> breakers;
  for (const std::string& whole : texts) {
    const std::string_view text = std::string_view(whole).substr(0, kMaxBytes);
    if (text.empty()) continue;
    std::map<size_t, std::vector<TokenId>> rests;  // by the bytes that are done
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const std::string_view bytes = vocabulary.bytes(id);
      if (bytes.find(text) != std::string_view::npos) {
        breakers.push_back({static_cast<int32_t>(id)});
        continue;
      }
      for (size_t done = 1; done < text.size(); ++done) {
        if (!bytes.ends_with(text.substr(0, done))) continue;
        if (!rests.contains(done)) {
          MINFER_ASSIGN(rests[done], tokenizer.encode(text.substr(done)));
          if (rests[done].size() > kMaxRestTokens) rests[done].resize(kMaxRestTokens);
        }
        std::vector<int32_t>& breaker = breakers.emplace_back(1, static_cast<int32_t>(id));
        breaker.insert(breaker.end(), rests[done].begin(), rests[done].end());
      }
    }
  }
  return breakers;
}

}  // namespace minfer
