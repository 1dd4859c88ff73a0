#include "toy_forward.hpp"

#include <cmath>

namespace minfer::test {
namespace {

using Row = std::vector<double>;

Row times(const std::vector<float>& matrix, const Row& x, const std::vector<float>* bias = nullptr) {
  Row y(matrix.size() / x.size());
  for (size_t o = 0; o < y.size(); ++o) {
    y[o] = bias ? (*bias)[o] : 0;
    for (size_t i = 0; i < x.size(); ++i) y[o] += matrix[o * x.size() + i] * x[i];
  }
  return y;
}

Row normed(const Row& x, const std::vector<float>& weight, float eps) {
  double squares = 0;
  for (double v : x) squares += v * v;
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] / std::sqrt(squares / static_cast<double>(x.size()) + eps) * weight[i];
  return y;
}

// Per-head norm (when the model has one), then rotation of (i, i + half) pairs.
Row placed(Row x, size_t head_dim, size_t position, const std::vector<float>* norm, float eps) {
  for (size_t h = 0; h < x.size(); h += head_dim) {
    Row head(x.begin() + static_cast<std::ptrdiff_t>(h), x.begin() + static_cast<std::ptrdiff_t>(h + head_dim));
    if (norm) head = normed(head, *norm, eps);
    for (size_t i = 0; i < head_dim / 2; ++i) {
      const double angle = static_cast<double>(position) / std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
      x[h + i] = head[i] * std::cos(angle) - head[i + head_dim / 2] * std::sin(angle);
      x[h + i + head_dim / 2] = head[i] * std::sin(angle) + head[i + head_dim / 2] * std::cos(angle);
    }
  }
  return x;
}

}  // namespace

std::vector<std::vector<double>> toy_forward(const ToyArchitecture& model, const std::vector<int32_t>& tokens) {
  const ToyOptions& o = model.options();
  const size_t n = tokens.size();
  std::vector<Row> x(n);
  const auto& embedding = model.weight("token_embd");
  for (size_t t = 0; t < n; ++t)
    for (size_t i = 0; i < o.n_embd; ++i) x[t].push_back(embedding[static_cast<size_t>(tokens[t]) * o.n_embd + i]);
  for (uint32_t l = 0; l < o.n_layers; ++l) {
    const auto w = [&](const std::string& name) -> const std::vector<float>& {
      return model.weight("blk." + std::to_string(l) + "." + name);
    };
    const auto bias = [&](const char* name) { return o.biases ? &w(name) : nullptr; };
    const auto norm = [&](const char* name) { return o.qk_norm ? &w(name) : nullptr; };
    std::vector<Row> k, v;
    for (size_t t = 0; t < n; ++t) {
      const Row h = normed(x[t], w("attn_norm"), o.eps);
      const Row q = placed(times(w("wq"), h, bias("bq")), o.head_dim, t, norm("q_norm"), o.eps);
      k.push_back(placed(times(w("wk"), h, bias("bk")), o.head_dim, t, norm("k_norm"), o.eps));
      v.push_back(times(w("wv"), h, bias("bv")));
      Row attended;
      const size_t first = o.window && t + 1 > o.window ? t + 1 - o.window : 0;
      for (size_t head = 0; head < o.n_head; ++head) {
        const size_t from = head / (o.n_head / o.n_head_kv) * o.head_dim;
        Row p;
        double total = 0;
        for (size_t s = first; s <= t; ++s) {
          double dot = 0;
          for (size_t d = 0; d < o.head_dim; ++d) dot += q[head * o.head_dim + d] * k[s][from + d];
          p.push_back(std::exp(dot / std::sqrt(static_cast<double>(o.head_dim))));
          total += p.back();
        }
        for (size_t d = 0; d < o.head_dim; ++d) {
          double sum = 0;
          for (size_t s = first; s <= t; ++s) sum += p[s - first] / total * v[s][from + d];
          attended.push_back(sum);
        }
      }
      const Row projected = times(w("wo"), attended);
      for (size_t i = 0; i < o.n_embd; ++i) x[t][i] += projected[i];
      const Row f = normed(x[t], w("ffn_norm"), o.eps);
      Row gate = times(w("gate"), f);
      const Row up = times(w("up"), f);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      const Row down = times(w("down"), gate);
      for (size_t i = 0; i < o.n_embd; ++i) x[t][i] += down[i];
    }
  }
  std::vector<Row> logits;
  for (size_t t = 0; t < n; ++t)
    logits.push_back(times(o.tied ? embedding : model.weight("output"), normed(x[t], model.weight("output_norm"), o.eps)));
  return logits;
}

}  // namespace minfer::test
