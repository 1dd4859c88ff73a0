// Each format of the KV cache: what it costs against the float64 references, and that its results do not depend on circumstances.
// The F32 models see what real quantised ones hide.
#include <catch2/catch.hpp>
#include <cstdio>

#include "golden.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

struct Format {
  KvFormat format;
  const char* name;
  Difference limit;  // of the logits of the F32 tiny models, whose standard deviation is 2.4 to 3.5
};
// f32: float arithmetic. f16: llama.cpp measures 0.0008 to 0.0017 RMS and 0.008 at most. q8_0: measured 0.018 to 0.026 RMS and 0.10 at
// most; nothing independent to compare with, so the limit is twice that.
const Format kFormats[] = {
    {KvFormat::kF32, "f32", {1e-5, 1e-4}}, {KvFormat::kF16, "f16", {4e-3, 0.016}}, {KvFormat::kQ8_0, "q8_0", {0.05, 0.2}}};

// q8_0 shares a scale among 32 elements of a head; one model has heads of 16.
bool holds(const TinyCase& tiny, const Format& format) { return format.format != KvFormat::kQ8_0 || tiny.file != "qwen2_F32.gguf"; }

std::vector<TinyCase> f32_models() {
  std::vector<TinyCase> cases;
  for (const char* architecture : {
#ifdef MINFER_TEST_QWEN2
           "qwen2",
#endif
#ifdef MINFER_TEST_LLAMA
           "llama",
#endif
#ifdef MINFER_TEST_QWEN3
           "qwen3",
#endif
       })
    for (const TinyCase& tiny : tiny_cases(architecture))
      if (tiny.type == "F32") cases.push_back(tiny);
  return cases;
}
}  // namespace

TEST_CASE("golden/kv formats: each format keeps the F32 models within its limit of the float64 reference", "[golden]") {
  double q8_0_best = 1;
  for (const Format& format : kFormats)
    for (const TinyCase& tiny : f32_models()) {
      if (!holds(tiny, format)) continue;
      const ModelOnCpu model(data_dir() / "tiny" / tiny.file, {2, "auto", format.format});
      const Difference found = difference_from_reference(model, tiny_reference(tiny));
      std::printf("%s, %s KV: RMS %.2g, max %.2g\n", tiny.file.c_str(), format.name, found.rms, found.max);
      INFO(tiny.file << " " << format.name);
      CHECK(found.rms <= format.limit.rms);
      CHECK(found.max <= format.limit.max);
      if (format.format == KvFormat::kF16) CHECK(found.rms > 2e-5);  // rows really are rounded
      if (format.format == KvFormat::kQ8_0) q8_0_best = std::min(q8_0_best, found.rms);
    }
  CHECK(q8_0_best > 1e-3);
}

TEST_CASE("golden/kv formats: chunks and threads and instruction sets do not change a bit in any format", "[golden]") {
  for (const TinyCase& tiny : f32_models()) {
    const std::vector<TinySequence> reference = tiny_reference(tiny);
    const std::vector<int32_t>& tokens = reference.back().ids;
    REQUIRE(tokens.size() == 200);
    for (const Format& format : kFormats) {
      if (!holds(tiny, format)) continue;
      std::vector<float> expected;
      for (const char* isa : {"auto", "baseline"})
        for (unsigned threads : {1u, 2u, 3u}) {
          const ModelOnCpu model(data_dir() / "tiny" / tiny.file, {threads, isa, format.format});
          for (uint32_t n_batch : {200u, 1u, 7u, 64u}) {
            const auto session = model.session(256);
            const std::vector<float> found = run_tokens(*session, tokens, 200, n_batch);
            if (expected.empty()) expected = found;
            INFO(tiny.file << " " << format.name << " " << isa << " threads " << threads << " chunk " << n_batch);
            REQUIRE(found.size() == 200 * size_t{model->info().n_vocab});
            CHECK(found == expected);
          }
        }
    }
  }
}
