// CPUID says what the CPU can do, XCR0 (XGETBV) which registers the operating system saves across a context switch.
// Both are needed: wide registers that are not saved get lost. Bits: Intel SDM vol. 2A "CPUID" and vol. 1 chapter 13.
#include "cpu_features.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace minfer::cpu {
namespace {

constexpr uint32_t bit(int n) { return uint32_t{1} << n; }

CpuidWords read_cpuid() {
  CpuidWords words;
#if defined(__x86_64__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) words.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
    words.leaf7_ebx = ebx;
    words.leaf7_ecx = ecx;
  }
  if (words.leaf1_ecx & bit(27)) {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = uint64_t{high} << 32 | low;
  }
#endif
  return words;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kBaseline: return "baseline";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Vnni: return "avx512vnni";
  }
  return "unknown";
}

Isa isa_from_cpuid(const CpuidWords& words) {
  constexpr uint32_t kOsxsave = bit(27), kAvx = bit(28), kFma = bit(12), kF16c = bit(29);
  constexpr uint32_t kAvx2 = bit(5), kAvx512 = bit(16) | bit(17) | bit(30) | bit(31);  // F, DQ, BW, VL
  constexpr uint32_t kVnni = bit(11);
  constexpr uint64_t kYmmState = 0x06, kZmmState = 0xe6;
  const auto all = [](auto value, auto mask) { return (value & mask) == mask; };

  if (!all(words.leaf1_ecx, kOsxsave | kAvx | kFma | kF16c) || !all(words.leaf7_ebx, kAvx2) || !all(words.xcr0, kYmmState))
    return Isa::kBaseline;
  if (!all(words.leaf7_ebx, kAvx512) || !all(words.xcr0, kZmmState)) return Isa::kAvx2;
  return all(words.leaf7_ecx, kVnni) ? Isa::kAvx512Vnni : Isa::kAvx512;
}

Isa best_isa() {
  static const Isa best = isa_from_cpuid(read_cpuid());
  return best;
}

bool isa_supported(Isa isa) { return isa <= best_isa(); }

}  // namespace minfer::cpu
