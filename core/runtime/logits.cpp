#include "runtime/logits.hpp"

#include <algorithm>
#include <cmath>

namespace minfer {

Status for_last_logits(Session& session, std::span<const int32_t> tokens, uint32_t n_last, uint32_t n_batch,
                       const std::function<Status(uint32_t position, std::span<const float> row)>& on_row) {
  if (tokens.empty()) return invalid("there are no tokens");
  if (n_batch == 0) return invalid("n_batch must be at least 1");
  const size_t first = tokens.size() - std::min<size_t>(n_last, tokens.size());  // position of the first row wanted
  for (size_t begin = 0; begin < tokens.size(); begin += n_batch) {
    const size_t end = std::min(begin + n_batch, tokens.size());
    const auto n_out = static_cast<uint32_t>(end <= first ? 0 : end - std::max(begin, first));
    const SeqChunk chunk{0, tokens.subspan(begin, end - begin), n_out};
    MINFER_ASSIGN(const Logits logits, session.forward({&chunk, 1}));
    for (uint32_t i = 0; i < n_out; ++i) MINFER_TRY(on_row(static_cast<uint32_t>(end - n_out + i), logits.row(i)));
  }
  return {};
}

Result<std::vector<TokenLogit>> top_logits(std::span<const float> row, uint32_t k) {
  std::vector<TokenLogit> all(row.size());
  for (uint32_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i])) return internal_error("the logit of token {} is not a number", i);
    all[i] = {i, row[i]};
  }
  const auto n = static_cast<ptrdiff_t>(std::min<size_t>(k, all.size()));
  std::partial_sort(all.begin(), all.begin() + n, all.end(),
                    [](const TokenLogit& a, const TokenLogit& b) { return a.logit != b.logit ? a.logit > b.logit : a.token < b.token; });
  all.resize(static_cast<size_t>(n));
  return all;
}

}  // namespace minfer
