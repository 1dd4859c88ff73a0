// The commands of minfer-eval. Each reads its own options, writes results to standard output and nothing else.
#pragma once

#include "programs/cli.hpp"
#include "programs/loading.hpp"

namespace minfer::programs {

struct EvalArguments {
  Config config;
  BackendOverrides backends;
  ParsedOptions options;
  int* code;  // how the program ends after a failure; kFailed unless the command says otherwise
};

Status eval_tokenize(const EvalArguments& arguments);
Status eval_detokenize(const EvalArguments& arguments);
Status eval_render(const EvalArguments& arguments);
Status eval_logits(const EvalArguments& arguments);
Status eval_perplexity(const EvalArguments& arguments);

}  // namespace minfer::programs
