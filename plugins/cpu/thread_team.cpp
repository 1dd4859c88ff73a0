#include "thread_team.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cstdio>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace minfer::cpu {
namespace {

// On an idle machine most waits end within the first; a longer one gives the CPU to whoever else wants it, which may be the very thread
// that is waited for, and at last sleeps. So two programs beside each other, each with a thread per CPU of the same two, generated 45
// tokens/s each; 25 where they only spun.
constexpr std::chrono::microseconds kSpinAloneTime{20};
constexpr std::chrono::microseconds kSpinTime{200};

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Results are defined for round to nearest with subnormals kept, whatever the host program has set on its threads.
class FloatMode {
 public:
  FloatMode() {
#if defined(__x86_64__)
    saved_ = _mm_getcsr();
    _mm_setcsr(0x1f80);  // all exceptions masked, round to nearest, FTZ and DAZ off
#endif
  }
  ~FloatMode() {
#if defined(__x86_64__)
    _mm_setcsr(saved_);
#endif
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  unsigned saved_ = 0;
};

// CPUs that the control group's quota is worth, rounded up; 0 where there is no quota. Formats: cgroup v2 cpu.max ("max 100000" or
// "200000 100000"), v1 cpu.cfs_quota_us and cpu.cfs_period_us.
unsigned cgroup_cpus() {
  long long quota = -1, period = 0;
  if (FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re")) {
    if (std::fscanf(file, "%lld %lld", &quota, &period) != 2) quota = -1;
    std::fclose(file);
  } else {
    const auto read_number = [](const char* path) {
      long long value = -1;
      if (FILE* f = std::fopen(path, "re")) {
        if (std::fscanf(f, "%lld", &value) != 1) value = -1;
        std::fclose(f);
      }
      return value;
    };
    quota = read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    period = read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  }
  return quota > 0 && period > 0 ? static_cast<unsigned>((quota + period - 1) / period) : 0;
}

}  // namespace

unsigned usable_cpus() {
  unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = std::max(1, CPU_COUNT(&set));
  if (const unsigned quota = cgroup_cpus()) cpus = std::min(cpus, quota);
  return cpus;
}

ThreadTeam::ThreadTeam(unsigned n_threads) : n_threads_(std::max(1u, n_threads)), may_spin_(n_threads_ <= usable_cpus()) {
  // Signals belong to the host program's threads; only those that a thread brings upon itself reach it, so that the program's handlers see
  // them: a blocked one ends the process.
  sigset_t all, saved;
  sigfillset(&all);
  for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, own);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  try {
    for (unsigned t = 1; t < n_threads_; ++t) helpers_.emplace_back([this, t] { helper_loop(t); });
  } catch (...) {
    quit_.store(true);
    start_.fetch_add(1);
    start_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
    pthread_sigmask(SIG_SETMASK, &saved, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
}

ThreadTeam::~ThreadTeam() {
  quit_.store(true);
  start_.fetch_add(1, std::memory_order_release);
  start_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::wait_for_change(const std::atomic<uint32_t>& word, uint32_t old) const {
  if (may_spin_) {
    const auto start = std::chrono::steady_clock::now();
    std::chrono::nanoseconds waited{0};
    do {
      if (waited > kSpinAloneTime) sched_yield();
      for (int i = 0; i < 256; ++i) {
        if (word.load(std::memory_order_acquire) != old) return;
        pause_cpu();
      }
      waited = std::chrono::steady_clock::now() - start;
    } while (waited < kSpinTime);
  }
  while (word.load(std::memory_order_acquire) == old) word.wait(old, std::memory_order_acquire);
}

void ThreadTeam::helper_loop(unsigned thread) {
  const FloatMode float_mode;
  uint32_t seen = 0;
  for (;;) {
    wait_for_change(start_, seen);
    ++seen;
    if (quit_.load()) return;
    body_(context_, thread);
    barrier();  // run() returns when all are here
  }
}

void ThreadTeam::run(void (*body)(void* context, unsigned thread), void* context) {
  const FloatMode float_mode;
  if (n_threads_ == 1) {
    body(context, 0);
    return;
  }
  body_ = body;
  context_ = context;
  start_.fetch_add(1, std::memory_order_release);
  start_.notify_all();
  body(context, 0);
  barrier();
}

void ThreadTeam::barrier() {
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    if (n_threads_ > 1) phase_.notify_all();
  } else {
    wait_for_change(phase_, phase);
  }
}

}  // namespace minfer::cpu
