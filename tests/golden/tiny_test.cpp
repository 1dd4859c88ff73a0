// Every tiny model against its float64 reference. Their shapes are awkward on purpose (widths that are no multiple of 64, several
// GQA ratios), and the F32 ones see faults that real quantised models hide.
#include <catch2/catch.hpp>

#include "golden.hpp"
#include "support/loaded_model.hpp"
#include "support/support.hpp"

using namespace minfer;
using namespace minfer::test;

namespace {

void check_tiny_models(const std::string& architecture, size_t expected_files) {
  const std::vector<TinyCase> cases = tiny_cases(architecture);
  REQUIRE(cases.size() == expected_files);
  for (const TinyCase& tiny : cases) {
    const std::vector<TinySequence> reference = tiny_reference(tiny);
    const Difference limit = tiny_limits(tiny);
    for (const char* isa : {"baseline", "auto"}) {
      const ModelOnCpu model(data_dir() / "tiny" / tiny.file, {2, isa, KvFormat::kF32});
      const Difference found = difference_from_reference(model, reference);
      INFO(tiny.file << " isa " << isa << " rms " << found.rms << " of " << limit.rms << ", max " << found.max << " of " << limit.max);
      CHECK(found.rms <= limit.rms);
      CHECK(found.max <= limit.max);
    }
  }
}

}  // namespace

#ifdef MINFER_TEST_QWEN2
TEST_CASE("golden/tiny: every qwen2 model is within its limit of the float64 reference", "[golden]") { check_tiny_models("qwen2", 30); }
#endif
#ifdef MINFER_TEST_LLAMA
TEST_CASE("golden/tiny: every llama model is within its limit of the float64 reference", "[golden]") { check_tiny_models("llama", 30); }
#endif
