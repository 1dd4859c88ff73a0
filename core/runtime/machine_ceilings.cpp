#include "runtime/machine_ceilings.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace minfer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double best_of(int runs, const std::function<void()>& work) {
  double best = seconds_of(work);
  for (int i = 1; i < runs; ++i) best = std::min(best, seconds_of(work));
  return best;
}

#if defined(__x86_64__)

constexpr uint64_t kRounds = 400'000;
constexpr int kChains = 4;  // independent, so that latency does not count

// kRounds times: in each chain kSteps vpmaddubsw of 32 products, added up, then widened once. The empty assembly keeps the compiler
// from seeing that every step is the same.
template <int kSteps>
__attribute__((target("avx2"))) void multiply_avx2() {
  __m256i a = _mm256_set1_epi8(3), w = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (uint64_t round = 0; round < kRounds; ++round)
    for (__m256i& sum : sums) {
      __m256i products = _mm256_maddubs_epi16(a, w);
      for (int step = 1; step < kSteps; ++step) {
        __asm__ volatile("" : "+x"(a), "+x"(w));
        products = _mm256_add_epi16(products, _mm256_maddubs_epi16(a, w));
      }
      __asm__ volatile("" : "+x"(products), "+x"(a));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, ones));
    }
  for (__m256i& sum : sums) __asm__ volatile("" : "+x"(sum));
}

__attribute__((target("avx512f,avx512vnni"))) void multiply_vnni() {
  constexpr int kSums = 16;
  __m512i a = _mm512_set1_epi8(3), w = _mm512_set1_epi8(5);
  __m512i sums[kSums];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (uint64_t round = 0; round < kRounds; ++round)
    for (__m512i& sum : sums) {
      __asm__ volatile("" : "+v"(a), "+v"(w));
      sum = _mm512_dpbusd_epi32(sum, a, w);
    }
  for (__m512i& sum : sums) __asm__ volatile("" : "+v"(sum));
}

// The best multiplier that kernels may use, on one core.
void measure_multiplies(MachineCeilings& ceilings) {
  const auto per_cycle = [&](double macs, void (*loop)()) { return macs / (best_of(5, loop) * ceilings.clock_ghz * 1e9); };
  if (__builtin_cpu_supports("avx512vnni")) {
    ceilings.instruction = "vpdpbusd";
    ceilings.macs_per_cycle_1 = per_cycle(kRounds * 16.0 * 64, multiply_vnni);
    ceilings.macs_per_cycle_4 = ceilings.macs_per_cycle_8 = ceilings.macs_per_cycle_1;
  } else if (__builtin_cpu_supports("avx2")) {
    ceilings.instruction = "vpmaddubsw";
    ceilings.macs_per_cycle_1 = per_cycle(kRounds * double{kChains} * 32, multiply_avx2<1>);
    ceilings.macs_per_cycle_4 = per_cycle(kRounds * double{kChains} * 32 * 4, multiply_avx2<4>);
    ceilings.macs_per_cycle_8 = per_cycle(kRounds * double{kChains} * 32 * 8, multiply_avx2<8>);
  }
}

#else

void measure_multiplies(MachineCeilings&) {}

#endif

// Reads `streams` runs of the words side by side, 64 bytes of each in turn, with the line `ahead` bytes further asked for; 0: no
// prefetch. (Words that no run gets, fewer than 8 * streams, are left out.)
template <size_t streams>
uint64_t read_all(const uint64_t* words, size_t n_words, size_t ahead) {
  uint64_t a = 0, b = 0, c = 0, d = 0;
  const size_t run = n_words / streams / 8 * 8;
  const size_t ahead_words = ahead / sizeof(uint64_t);
  for (size_t i = 0; i < run; i += 8)
    for (size_t stream = 0; stream < streams; ++stream) {
      const uint64_t* line = words + stream * run + i;
      if (ahead > 0) __builtin_prefetch(line + ahead_words);
      a |= line[0] | line[1];
      b |= line[2] | line[3];
      c |= line[4] | line[5];
      d |= line[6] | line[7];
    }
  return a | b | c | d;
}

double measure_read_gb_s(unsigned threads) {
  constexpr size_t kBytes = size_t{512} << 20;
  constexpr size_t kLine = 64;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  madvise(memory, kBytes, MADV_HUGEPAGE);
  auto* words = static_cast<uint64_t*>(memory);
  const auto on_all_threads = [&](const std::function<void(const uint64_t*, size_t)>& body) {
    const size_t n_lines = kBytes / kLine;
    std::vector<std::thread> team;
    for (unsigned t = 0; t < threads; ++t) {
      const size_t begin = n_lines * t / threads, end = n_lines * (t + 1) / threads;
      team.emplace_back([&, begin, end] { body(words + begin * kLine / sizeof(uint64_t), (end - begin) * kLine / sizeof(uint64_t)); });
    }
    for (std::thread& thread : team) thread.join();
  };
  on_all_threads([](const uint64_t* part, size_t n) { std::fill_n(const_cast<uint64_t*>(part), n, 1); });
  double best = 0;
  for (const auto read : {read_all<1>, read_all<2>, read_all<4>})
    for (const size_t ahead : {0, 512, 2048}) {
      const double seconds = best_of(4, [&] {
        on_all_threads([&](const uint64_t* part, size_t n) {
          const uint64_t bits = read(part, n, ahead);
          __asm__ volatile("" : : "r"(bits));
        });
      });
      best = std::max(best, static_cast<double>(kBytes) / seconds * 1e-9);
    }
  munmap(memory, kBytes);
  return best;
}

}  // namespace

double MachineCeilings::macs_per_cycle(unsigned bits) const {
  // Offset weights of `bits` bits are at most 2^(bits - 1) in size, activations 127, and vpmaddubsw adds two products into each lane.
  const unsigned sums = bits >= 8 ? 1 : 32767 / (2 * 127 * (1u << (bits - 1)));
  return sums >= 8 ? macs_per_cycle_8 : sums >= 4 ? macs_per_cycle_4 : macs_per_cycle_1;
}

double measure_clock_ghz() {
#if defined(__x86_64__)
  constexpr uint64_t kAdditions = 16'000'000;
  const double seconds = best_of(10, [] {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kAdditions / 32; ++i) __asm__ volatile(".rept 32\n\tadd $1, %0\n\t.endr" : "+r"(sum));
  });
  return static_cast<double>(kAdditions) / seconds * 1e-9;
#else
  return 0;
#endif
}

MachineCeilings measure_ceilings(unsigned threads) {
  MachineCeilings ceilings;
  ceilings.threads = std::max(threads, 1u);
  ceilings.clock_ghz = measure_clock_ghz();
  if (ceilings.clock_ghz > 0) measure_multiplies(ceilings);
  ceilings.read_gb_s = measure_read_gb_s(ceilings.threads);
  return ceilings;
}

}  // namespace minfer
