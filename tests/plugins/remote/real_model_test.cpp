// The real model with no layer on the device, and cut behind its first, its middle and its last-but-one layer.
#include "offload_run.hpp"

using namespace minfer;
using namespace minfer::test;

#ifdef MINFER_TEST_QWEN2
TEST_CASE("remote/models: qwen2 with 0 or 1 or 12 or 23 of its 24 layers on the device gives the cpu's logits") {
  const std::filesystem::path file = model_file(kQwen2Model);
  const std::vector<int32_t> prompt{9707, 11, 1879, 0, 3555, 374, 264, 8117, 30};
  const auto run = [&](Session& session) {
    std::vector<float> rows = run_tokens(session, prompt, 2);
    for (const int32_t token : {362, 8117}) {
      const std::vector<float> row = run_tokens(session, {token}, 1);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return rows;
  };
  std::vector<float> expected;
  {
    const ModelOnCpu alone(file);
    expected = run(*alone.session(128));
  }
  for (const int layers : {0, 1, 12, 23}) {
    const ModelOnBackends model(file, {backend("remote", layers, {{"threads", "2"}}), cpu()});
    const auto session = model.session(128);
    INFO(layers << " layers");
    CHECK(same_bits(run(*session), expected));
    REQUIRE(model->info().n_layers == 24);
    CHECK(std::count(model->engine().placement().kv_device.begin(), model->engine().placement().kv_device.end(), 0u) == layers);
    if (layers == 0) {
      CHECK(splits_by_device(*session) == std::vector<size_t>{0, 1});
      CHECK(session->stats().executor.staged_bytes == 0);
    } else {
      CHECK(splits_by_device(*session) == std::vector<size_t>{1, 2});
      CHECK(session->stats().executor.staged_bytes == uint64_t{2} * 11 * model->info().n_embd * sizeof(float));
    }
  }
}
#endif
