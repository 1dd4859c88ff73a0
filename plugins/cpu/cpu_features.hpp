// Which instruction sets this CPU *and* its operating system offer, as the four levels the kernels are written for.
// Knows nothing of kernels: it only says what may run.
#pragma once

#include <cstdint>
#include <string_view>

namespace minfer::cpu {

// Each level includes the ones before it.
//   avx2        AVX2, FMA, F16C
//   avx512      AVX-512 F, BW, VL, DQ
//   avx512vnni  the above and VNNI
enum class Isa : uint32_t { kBaseline, kAvx2, kAvx512, kAvx512Vnni };
inline constexpr uint32_t kIsaCount = 4;

// "baseline", "avx2", "avx512", "avx512vnni".
std::string_view isa_name(Isa isa);

// The highest level this machine can run. Asked of the CPU once; safe from any thread.
Isa best_isa();
bool isa_supported(Isa isa);

// The registers the decision is made from; zero where the CPU has no such leaf.
struct CpuidWords {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint64_t xcr0 = 0;  // register state the operating system saves; 0 unless OSXSAVE is set
};
Isa isa_from_cpuid(const CpuidWords& words);

}  // namespace minfer::cpu
