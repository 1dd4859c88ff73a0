// KV regions on the device: every format, sequences that share blocks, keys that are turned, values that do not fit.
#include "opencl_run.hpp"

using namespace minfer;
using namespace minfer::test;

TEST_CASE("opencl/kv: every format gives the cpu's logits") {
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ8_0}) {
    const ModelOnCpu alone(quantised_file(), {1, "auto", format});
    const ModelOnBackends model(quantised_file(), {opencl(1), cpu()}, format);
    const std::vector<int32_t> ids = tokens(alone, 73);
    const auto session = model.session(256);
    CHECK(same_bits(prompt_and_decode(*session, ids), prompt_and_decode(*alone.session(256), ids)));
    CHECK(session->stats().executor.staged_bytes > 0);
  }
}
