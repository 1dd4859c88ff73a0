#include "runtime/perplexity.hpp"

#include <algorithm>
#include <cmath>

namespace minfer {

double log_sum_exp(std::span<const float> row) {
  const double max = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float logit : row) sum += std::exp(static_cast<double>(logit) - max);
  return max + std::log(sum);
}

Result<Perplexity> perplexity(Session& session, std::span<const int32_t> tokens, uint32_t n_ctx, uint32_t n_batch,
                              const std::function<void(size_t done, size_t total)>& on_chunk) {
  if (n_ctx < 4 || n_ctx % 2) return invalid("context {} must be an even number of at least 4", n_ctx);
  if (n_batch == 0) return invalid("n_batch must be at least 1");
  if (n_ctx > session.cparams().n_ctx) return invalid("context {} does not fit the session's {}", n_ctx, session.cparams().n_ctx);
  const size_t n_chunks = tokens.size() / n_ctx;
  if (n_chunks == 0) return invalid("the text has {} tokens, one chunk needs {}", tokens.size(), n_ctx);
  Perplexity result;
  result.n_ctx = n_ctx;
  result.n_tokens = tokens.size();
  const uint32_t first = n_ctx / 2;  // first position that is scored
  double total = 0;
  for (size_t c = 0; c < n_chunks; ++c) {
    const std::span<const int32_t> chunk = tokens.subspan(c * n_ctx, n_ctx);
    MINFER_TRY(session.rollback(0, 0));
    double chunk_nll = 0;
    for (uint32_t begin = 0; begin < n_ctx; begin += n_batch) {
      const uint32_t end = std::min(begin + n_batch, n_ctx);
      const uint32_t n_out = end <= first ? 0 : end - std::max(begin, first);
      const SeqChunk step{0, chunk.subspan(begin, end - begin), n_out};
      MINFER_ASSIGN(const Logits logits, session.forward({&step, 1}));
      for (uint32_t i = 0; i < n_out; ++i) {
        const uint32_t position = end - n_out + i;
        if (position + 1 >= n_ctx) continue;
        const auto row = logits.row(i);
        const double nll = log_sum_exp(row) - static_cast<double>(row[static_cast<size_t>(chunk[position + 1])]);
        if (!std::isfinite(nll))
          return invalid("chunk {}, position {}: a logit is not finite: the model's weights or the text's activations overflow", c,
                         position);
        chunk_nll += nll;
      }
    }
    const uint32_t scored = n_ctx - 1 - first;
    result.n_scored += scored;
    total += chunk_nll;
    result.chunk_mean_nll.push_back(chunk_nll / scored);
    if (on_chunk) on_chunk(c + 1, n_chunks);
  }
  result.mean_nll = total / static_cast<double>(result.n_scored);
  return result;
}

}  // namespace minfer
