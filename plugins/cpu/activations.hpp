// The left side of a matrix product: rows of f32, normalised first where an RMS_NORM stands before it, and quantised where
// the weights want 8-bit activations.
#pragma once

#include "phase.hpp"

namespace minfer::cpu {

struct Activations {
  // Source rows [n_tokens][cols] f32 in graph memory.
  const float* x = nullptr;
  size_t n_tokens = 0;
  size_t cols = 0;
  const float* norm_weight = nullptr;  // not null: rms_norm with it comes first
  float eps = 0;
  uint32_t layer = 0;

  bool want_q8 = false;
  bool per_thread = false;  // few rows: every thread prepares its own copy, which saves a barrier
  int shared_slot = 0;      // where not per_thread
  // Places inside Worker::own_scratch() (per_thread) or Worker::shared[shared_slot].
  size_t norm_offset = 0;
  size_t q8_offset = 0;

  struct Ready {
    const Q8Block* q8 = nullptr;
    const float* x = nullptr;  // normalised where that was asked for
  };
  // Where the prepared rows lie.
  Ready place(const Worker& worker) const;
  // Prepares one row there. False where a value is not finite.
  bool prepare_row(const Worker& worker, size_t token) const;
  std::byte* base(const Worker& worker) const { return per_thread ? worker.own_scratch() : worker.shared[shared_slot]; }
  // For a phase that multiplies: prepares all rows first if every thread has its own copy.
  Ready get(const Worker& worker) const;

  size_t norm_bytes() const { return norm_weight ? n_tokens * cols * sizeof(float) : 0; }
  size_t q8_bytes() const { return want_q8 ? n_tokens * cols / 32 * sizeof(Q8Block) : 0; }
};

// Prepares shared activations, rows handed out among the threads.
class PreparePhase final : public Phase {
 public:
  explicit PreparePhase(const Activations& activations) : activations_(activations) {}
  void run(const Worker& worker) override;

 private:
  Activations activations_;
};

}  // namespace minfer::cpu
