// The toy model once more, in double and without graphs: what a forward pass of it must give.
#pragma once

#include "support/toy_architecture.hpp"

namespace minfer::test {

// Logits of every position of one sequence: [tokens.size()][n_vocab].
std::vector<std::vector<double>> toy_forward(const ToyArchitecture& model, const std::vector<int32_t>& tokens);

}  // namespace minfer::test
