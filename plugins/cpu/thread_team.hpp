// The threads of one opened device: the caller and n - 1 helpers that run one function together, with barriers inside.
//
// Waiting spins, then yields, then sleeps, so steps that follow each other closely cost no system call, other programs are not kept from
// the CPU for long, and an idle team costs nothing. Where there are more threads than CPUs it sleeps at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace minfer::cpu {

// CPUs this process may use: affinity mask and cgroup quota.
unsigned usable_cpus();

class ThreadTeam {
 public:
  explicit ThreadTeam(unsigned n_threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  unsigned size() const { return n_threads_; }

  // Calls body(context, thread) on every thread of the team, thread 0 being the caller; returns when all are done. body must
  // not throw. From one thread at a time.
  void run(void (*body)(void* context, unsigned thread), void* context);
  template <class Body>
  void run(Body&& body) {
    run([](void* context, unsigned thread) { (*static_cast<std::remove_reference_t<Body>*>(context))(thread); }, &body);
  }

  // Inside run(): waits for all threads of the team. What they wrote before is visible behind it.
  void barrier();

  // Barriers passed since the team was made.
  uint64_t barriers() const { return phase_.load(std::memory_order_relaxed); }

 private:
  void helper_loop(unsigned thread);
  // Until `word` differs from `old`.
  void wait_for_change(const std::atomic<uint32_t>& word, uint32_t old) const;

  const unsigned n_threads_;
  const bool may_spin_;

  // Each on a cache line of its own: they are written by one thread while the others poll.
  alignas(64) std::atomic<uint32_t> start_{0};    // grows by one per run
  alignas(64) std::atomic<uint32_t> arrived_{0};  // threads at the barrier
  alignas(64) std::atomic<uint32_t> phase_{0};    // grows by one per barrier
  alignas(64) void (*body_)(void*, unsigned) = nullptr;
  void* context_ = nullptr;
  std::atomic<bool> quit_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace minfer::cpu
