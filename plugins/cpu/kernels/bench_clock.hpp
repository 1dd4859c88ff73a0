// The clock as the benchmarks count cycles by: dependent additions, one per cycle, over CPU time. Benchmarks alone include it.
#pragma once

#include <cstdint>
#include <ctime>

namespace minfer::cpu {
namespace {

double clock_hz() {
  const std::clock_t start = std::clock();
  uint64_t n = 200'000'000;
#if defined(__x86_64__)
  for (uint64_t i = n / 16; i != 0; --i)  // 16 dependent additions: 16 cycles
    __asm__ volatile(".rept 16\n\tadd $1, %0\n\t.endr" : "+r"(n));
#endif
  return 200e6 * CLOCKS_PER_SEC / static_cast<double>(std::clock() - start);
}

}  // namespace
}  // namespace minfer::cpu
