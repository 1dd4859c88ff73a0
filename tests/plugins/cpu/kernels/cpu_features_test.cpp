#include "cpu_features.hpp"

#include <catch2/catch.hpp>

namespace minfer::cpu {
namespace {

// Register values as a Zen 4 CPU under Linux shows them (only the bits that matter).
CpuidWords zen4() { return {0x38001000, 0xc0030020, 0x00000800, 0xe7}; }

TEST_CASE("cpu/features: the level follows the CPUID bits") {
  CpuidWords words = zen4();
  CHECK(isa_from_cpuid(words) == Isa::kAvx512Vnni);
  words.leaf7_ecx = 0;
  CHECK(isa_from_cpuid(words) == Isa::kAvx512);
  for (int bit : {16, 17, 30, 31}) {
    words = zen4();
    words.leaf7_ebx &= ~(uint32_t{1} << bit);
    CHECK(isa_from_cpuid(words) == Isa::kAvx2);
  }
  for (int bit : {12, 27, 28, 29}) {
    words = zen4();
    words.leaf1_ecx &= ~(uint32_t{1} << bit);
    CHECK(isa_from_cpuid(words) == Isa::kBaseline);
  }
  words = zen4();
  words.leaf7_ebx &= ~uint32_t{0x20};
  CHECK(isa_from_cpuid(words) == Isa::kBaseline);
}

TEST_CASE("cpu/features: registers that the operating system does not save are not used") {
  CpuidWords words = zen4();
  words.xcr0 = 0x07;
  CHECK(isa_from_cpuid(words) == Isa::kAvx2);
  words.xcr0 = 0x67;  // without the upper 16 registers
  CHECK(isa_from_cpuid(words) == Isa::kAvx2);
  words.xcr0 = 0x03;
  CHECK(isa_from_cpuid(words) == Isa::kBaseline);
  words.xcr0 = 0;
  CHECK(isa_from_cpuid(words) == Isa::kBaseline);
}

TEST_CASE("cpu/features: names and support agree with the best level") {
  CHECK(isa_name(Isa::kBaseline) == "baseline");
  CHECK(isa_name(Isa::kAvx2) == "avx2");
  CHECK(isa_name(Isa::kAvx512) == "avx512");
  CHECK(isa_name(Isa::kAvx512Vnni) == "avx512vnni");
  CHECK(isa_supported(Isa::kBaseline));
  CHECK(isa_supported(best_isa()));
#if defined(__x86_64__)
  // The compiler's own detection as the second opinion.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  CHECK(isa_supported(Isa::kAvx2) == avx2);
  CHECK(isa_supported(Isa::kAvx512) == (avx2 && avx512));
#endif
}

}  // namespace
}  // namespace minfer::cpu
