// Timing of prompt processing and generation in a loaded model, on synthetic tokens. Prints nothing.
#pragma once

#include <functional>
#include <vector>

#include "engine/session.hpp"

namespace minfer {

struct BenchTest {
  uint32_t n_prompt = 0;  // either: prefill of so many tokens with one row of logits
  uint32_t n_gen = 0;     // or: so many decode steps of one token, each with all its logits; nothing is sampled
  uint32_t depth = 0;     // tokens in the KV before the clock starts; a generation has at least one
};

struct BenchOptions {
  uint32_t repetitions = 5;
  uint32_t n_batch = 512;
  double warmup_s = 2;  // untimed repetitions before: at least one and two steps, and until so much time has passed
};

// Positions that a test takes.
uint32_t positions_of(const BenchTest& test);

// Tokens per second of each repetition. Each starts at position 0 of sequence 0.
Result<std::vector<double>> bench(Session& session, const BenchTest& test, const BenchOptions& options);

struct MeanDeviation {
  double mean = 0;
  double deviation = 0;  // of the sample (n - 1); 0 with fewer than two values
};
MeanDeviation mean_deviation(const std::vector<double>& samples);

}  // namespace minfer
