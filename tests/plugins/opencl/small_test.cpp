// Every kernel on a few tokens: small enough for a simulator that watches each memory access (oclgrind_test.cpp).
#include "opencl_run.hpp"

using namespace minfer;
using namespace minfer::test;

#ifdef MINFER_TEST_QWEN2
namespace {

struct SmallCase {
  const char* file;
  KvFormat format;
};

// Two tokens at once and one alone; then rows that are copied (the prefix is shared) and turned (a position is taken out).
std::vector<float> run(const ModelOnBackends& model) {
  const std::vector<int32_t> ids = tokens(model, 8);
  CParams two;
  two.max_seqs = 2;
  const auto session = model.session(128, two);
  std::vector<float> rows = run_tokens(*session, {ids.begin(), ids.begin() + 2}, 1);
  const std::vector<float> alone = run_tokens(*session, {ids[2]}, 1);
  rows.insert(rows.end(), alone.begin(), alone.end());
  if (!session->share_prefix(0, 1, 2).ok() || !session->remove(0, 0, 1).ok()) FAIL("the rows were not moved");
  const std::vector<float> moved = run_tokens(*session, {ids[3]}, 1);
  rows.insert(rows.end(), moved.begin(), moved.end());
  return rows;
}

void check(const SmallCase& small) {
  const std::filesystem::path file = data_dir() / "tiny" / small.file;
  const std::vector<float> expected = run(ModelOnCpu(file, {1, "auto", small.format}));
  INFO(small.file);
  CHECK(same_bits(run(ModelOnBackends(file, {opencl()}, small.format)), expected));
}

}  // namespace

TEST_CASE("opencl/small: four tokens of one quantised model give the cpu's logits") { check({"qwen2_Q4_0.gguf", KvFormat::kF16}); }

TEST_CASE("opencl/small: four tokens of each other form of weights and KV format give the cpu's logits") {
  for (const SmallCase& small : {SmallCase{"qwen2_F32.gguf", KvFormat::kF32}, SmallCase{"qwen2_F16.gguf", KvFormat::kF16},
                                 SmallCase{"qwen2_BF16.gguf", KvFormat::kF16}, SmallCase{"qwen2_Q4_1.gguf", KvFormat::kF16},
                                 SmallCase{"qwen2_Q6_K.gguf", KvFormat::kF16}, SmallCase{"qwen2_untied_Q4_K.gguf", KvFormat::kQ8_0}})
    check(small);
}
#endif
