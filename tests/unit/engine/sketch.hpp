// Small graphs for tests: weights of every shape among the widths 8, 16, 32, and heads of 8.
#pragma once

#include "support/graph_writer.hpp"

namespace minfer::test {

inline const std::vector<WeightInfo>& sketch_weights() {
  static const std::vector<WeightInfo> weights = [] {
    std::vector<WeightInfo> list;
    const auto add = [&](const Shape& shape) { list.push_back({"w" + std::to_string(list.size()), DType::kF32, shape, 0, 0}); };
    for (uint64_t n : {8u, 16u, 32u}) add({n, 50});  // embeddings: 0..2
    for (uint64_t n_in : {8u, 16u, 32u})
      for (uint64_t n_out : {8u, 16u, 32u}) add({n_in, n_out});  // matrices: 3..11
    for (uint64_t n : {8u, 16u, 32u, 4u}) add({n});              // vectors: 12..15
    return list;
  }();
  return weights;
}

struct Sketch {
  explicit Sketch(uint32_t n_tokens = 4, uint32_t n_out = 2)
      : builder(make_graph_params(n_tokens, n_out, {}), sketch_weights()), g(builder) {}

  static uint32_t index(uint64_t width) { return width == 8 ? 0 : width == 16 ? 1 : 2; }
  ValueId matrix(uint64_t n_in, uint64_t n_out) { return g.weight(3 + 3 * index(n_in) + index(n_out)); }
  ValueId vector(uint64_t n) { return g.weight(n == 4 ? 15 : 12 + index(n)); }
  // An activation [width, n_tokens].
  ValueId x(uint64_t width = 16) { return g.get_rows(g.weight(index(width)), g.input(InputKind::kTokenIds)); }
  ValueId matmul(ValueId value, uint64_t n_in, uint64_t n_out) { return g.matmul(value, matrix(n_in, n_out)); }
  Graph finish() {
    auto graph = builder.finish();
    if (!graph.ok()) throw std::logic_error(graph.error().text);
    return std::move(*graph);
  }

  GraphBuilder builder;
  GraphWriter g;
};

}  // namespace minfer::test
