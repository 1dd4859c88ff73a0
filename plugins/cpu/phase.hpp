// A plan is a list of phases. All threads of the team walk through it together; a phase hands its work out among them and
// says whether everyone must have finished before the next one begins.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/matmul.hpp"
#include "kernels/ops.hpp"
#include "minfer/plugin/backend.hpp"
#include "thread_team.hpp"

namespace minfer::cpu {

struct Kernels {
  const OpKernels& ops;
  const MatmulKernels& matmul;
};

// First failure of a run. Threads leave at the barrier behind the phase that failed, all at the same one.
class Failure {
 public:
  static constexpr uint32_t kNever = ~0u;
  void reset() {
    phase_.store(kNever, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_relaxed);
  }
  // `what` has static lifetime. row: of the batch.
  void set(uint32_t phase, int32_t code, const char* what, uint32_t layer, int64_t row) {
    if (!taken_.exchange(true)) {
      code_ = code;
      what_ = what;
      layer_ = layer;
      row_ = row;
    }
    uint32_t seen = phase_.load();
    while (phase < seen && !phase_.compare_exchange_weak(seen, phase)) {
    }
  }
  bool by(uint32_t phase) const { return phase_.load(std::memory_order_acquire) <= phase; }
  void throw_if_set() const;

 private:
  std::atomic<uint32_t> phase_{kNever};
  std::atomic<bool> taken_{false};
  int32_t code_ = MI_OK;
  const char* what_ = nullptr;
  uint32_t layer_ = 0;
  int64_t row_ = 0;
};

// What one run binds: the graph inputs and the rows of the batch resolved to KV blocks.
struct RunState {
  const int32_t* inputs[MI_INPUT_COUNT] = {};
  std::vector<std::vector<AttentionRow>> rows;  // by PhasePlan::row_lists
  Failure failure;
};

// One thread inside a run.
struct Worker {
  const Kernels& kernels;
  const RunState& state;
  Failure& failure;
  unsigned thread;
  unsigned n_threads;
  uint32_t phase;        // index of the phase that runs
  std::byte* scratch;    // of this thread alone: kMatmulScratchBytes, then what the plan asked for
  std::byte* shared[2];  // of the whole team: prepared activations; what a feed-forward hands to the product behind it
  std::byte* own_scratch() const { return scratch + kMatmulScratchBytes; }
};

struct Range {
  size_t begin = 0, end = 0;
};
// Part `thread` of n items, in contiguous ranges whose sizes differ by one at most.
inline Range split_evenly(size_t n, unsigned thread, unsigned n_threads) { return {n * thread / n_threads, n * (thread + 1) / n_threads}; }

class Phase {
 public:
  virtual ~Phase() = default;
  virtual void run(const Worker& worker) = 0;
  // Called by one thread before each run.
  void begin_run() { next_.store(0, std::memory_order_relaxed); }

  bool barrier_after = true;

 protected:
  // Hands out items [0, n): every thread its own fixed part, or, with `in_turn`, the next free item to whoever is free.
  template <class Body>
  void share(const Worker& worker, size_t n, bool in_turn, Body&& body) {
    if (!in_turn) {
      const Range range = split_evenly(n, worker.thread, worker.n_threads);
      for (size_t i = range.begin; i < range.end; ++i) body(i);
      return;
    }
    for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n;) body(i);
  }

  // The first and longest range that share_ranges hands out of n items: seven eighths of an even share; from two units on, whole units.
  static size_t longest_range(size_t n, size_t unit, unsigned n_threads) {
    if (n_threads == 1) return n;
    const size_t share = std::max<size_t>(n * 7 / (8 * n_threads), 1);
    return share < 2 * unit ? share : std::min((share + unit - 1) / unit * unit, n);
  }

  // Hands out items [0, n) in ranges that become smaller: whoever is free takes the longest range of what is left. Streams are long,
  // and what comes last is short, so that all threads end at about the same time.
  template <class Body>
  void share_ranges(const Worker& worker, size_t n, size_t unit, Body&& body) {
    size_t begin = next_.load(std::memory_order_relaxed);
    while (begin < n) {
      const size_t end = begin + longest_range(n - begin, unit, worker.n_threads);
      if (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      body(begin, end);
      begin = next_.load(std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<size_t> next_{0};
};

}  // namespace minfer::cpu
