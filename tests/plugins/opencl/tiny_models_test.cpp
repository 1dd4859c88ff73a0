// Tiny models on the device: the cpu's bits, whatever the weight type, wherever the model is cut.
#include "opencl_run.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

void check_file(const std::string& file, const std::vector<int>& cuts) {
  const ModelOnCpu alone(data_dir() / "tiny" / file);
  const std::vector<int32_t> ids = tokens(alone, 73);
  const std::vector<float> expected = prompt_and_decode(*alone.session(256), ids);
  for (const int layers : cuts) {
    const ModelOnBackends model(data_dir() / "tiny" / file, {opencl(layers), cpu()});
    INFO(file << ", " << layers << " layers");
    CHECK(model->engine().placement().fallbacks.empty());
    const auto session = model.session(256);
    CHECK(same_bits(prompt_and_decode(*session, ids), expected));
    CHECK(splits_by_device(*session)[0] >= 1);
  }
}

}  // namespace

#ifdef MINFER_TEST_QWEN2
TEST_CASE("opencl/tiny: qwen2 of every weight type gives the cpu's logits") {
  for (const char* type : {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "MIXED"})
    check_file(std::string("qwen2_") + type + ".gguf", {2});
  check_file("qwen2_untied_MIXED.gguf", {1, 2});
}
#endif

#ifdef MINFER_TEST_LLAMA
TEST_CASE("opencl/tiny: llama with interleaved rotation and frequency factors gives the cpu's logits") {
  check_file("llama_F32_ropefreqs.gguf", {1, 2});
  check_file("llama_untied_Q6_K.gguf", {1, 2});
  check_file("llama_MIXED.gguf", {2});
}
#endif

#ifdef MINFER_TEST_QWEN3
TEST_CASE("opencl/tiny: qwen3 with norms per head gives the cpu's logits") {
  check_file("qwen3_F32.gguf", {1, 2});
  check_file("qwen3_MIXED.gguf", {2});
}
#endif
