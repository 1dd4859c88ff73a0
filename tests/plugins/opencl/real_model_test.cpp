// The real model whole and cut behind several layers: the cpu's greedy tokens, and its logits.
#include <cmath>
#include <cstdio>

#include "opencl_run.hpp"

using namespace minfer;
using namespace minfer::test;

#ifdef MINFER_TEST_QWEN2
namespace {

struct Greedy {
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // of every step
};

Greedy greedy(Session& session, const std::vector<int32_t>& prompt, size_t n) {
  Greedy out;
  std::vector<int32_t> next = prompt;
  while (out.tokens.size() < n) {
    const std::vector<float> row = run_tokens(session, next, 1);
    out.logits.insert(out.logits.end(), row.begin(), row.end());
    out.tokens.push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
    next = {out.tokens.back()};
  }
  return out;
}

}  // namespace

TEST_CASE("opencl/models: qwen2 whole or cut behind layer 0 or 1 or 12 or 23 gives the cpu's 16 greedy tokens") {
  const std::filesystem::path file = model_file(kQwen2Model);
  const std::vector<int32_t> prompt{9707, 11, 1879, 0, 3555, 374, 264, 8117};
  Greedy expected;
  {
    const ModelOnCpu alone(file);
    expected = greedy(*alone.session(64), prompt, 16);
  }
  for (const int layers : {-1, 0, 1, 12, 23}) {
    std::vector<BackendSpec> backends{opencl(layers)};
    if (layers >= 0) backends.push_back(cpu());
    const ModelOnBackends model(file, backends);
    const auto session = model.session(64);
    const Greedy found = greedy(*session, prompt, 16);
    INFO(layers << " layers");
    CHECK(found.tokens == expected.tokens);
    if (layers > 0) CHECK(splits_by_device(*session) == std::vector<size_t>{1, 2});
    float worst = 0;
    REQUIRE(found.logits.size() == expected.logits.size());
    for (size_t i = 0; i < found.logits.size(); ++i) worst = std::max(worst, std::abs(found.logits[i] - expected.logits[i]));
    std::printf("opencl with %d layers: largest difference of a logit %g\n", layers, static_cast<double>(worst));
    CHECK(worst < 1e-3f);  // 0 on PoCL: sines and cosines are the only numbers that may differ
  }
}
#endif
