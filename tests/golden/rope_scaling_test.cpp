// Scaled rotary positions: models of one layer against float64 references far beyond their original context, and shifts of a context,
// whose keys must be turned by the scaled frequencies.
#include <catch2/catch.hpp>
#include <cmath>

#include "golden.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

const std::vector<std::string> kModels = {
#ifdef MINFER_TEST_LLAMA
    "llama_linear", "llama_llama3", "llama_yarn",
#endif
#ifdef MINFER_TEST_QWEN2
    "qwen2_yarn",
#endif
#ifdef MINFER_TEST_QWEN3
    "qwen3_yarn",
#endif
};

std::filesystem::path model_path(const std::string& name) { return data_dir() / "rope" / (name + ".gguf"); }
std::vector<TinySequence> reference_of(const std::string& name) { return read_reference(data_dir() / "rope" / (name + ".json")); }

}  // namespace

TEST_CASE("golden/rope scaling: linear and Llama 3's and YaRN give the float64 logits beyond the original context", "[golden]") {
  for (const std::string& name : kModels) {
    const std::vector<TinySequence> reference = reference_of(name);
    REQUIRE(reference.back().rows.back() == 199);
    for (const char* isa : {"baseline", "auto"}) {
      const ModelOnCpu model(model_path(name), {2, isa, KvFormat::kF32});
      const Difference found = difference_from_reference(model, reference);
      INFO(name << " isa " << isa << " rms " << found.rms << " max " << found.max);
      CHECK(found.rms <= 1e-5);
      CHECK(found.max <= 1e-4);
    }
  }
}

// A key of the only layer depends on its token and position alone, so a shifted context equals a fresh one but for rounding.
TEST_CASE("golden/rope scaling: keys of a shifted context are turned by the scaled frequencies", "[golden]") {
  for (const std::string& name : kModels) {
    const std::vector<int32_t> tokens = reference_of(name).back().ids;
    const ModelOnCpu model(model_path(name), {2, "auto", KvFormat::kF32});
    REQUIRE(model->info().n_layers == 1);
    const auto shifted = model.session(256), fresh = model.session(256);
    run_tokens(*shifted, tokens, 0);
    REQUIRE(shifted->remove(0, 10, 90).ok());
    std::vector<int32_t> left(tokens.begin(), tokens.begin() + 10);
    left.insert(left.end(), tokens.begin() + 100, tokens.end());
    run_tokens(*fresh, left, 0);
    const std::vector<int32_t> more(tokens.begin(), tokens.begin() + 40);
    const std::vector<float> a = run_tokens(*shifted, more, 40), b = run_tokens(*fresh, more, 40);
    REQUIRE(a.size() == b.size());
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    INFO(name);
    CHECK(std::sqrt(sum / static_cast<double>(a.size())) <= 1e-5);
    CHECK(sum > 0);  // turned, not computed afresh
  }
}
