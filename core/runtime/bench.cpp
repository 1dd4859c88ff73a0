#include "runtime/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/generate.hpp"

namespace minfer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<int32_t> synthetic_tokens(uint32_t count, uint32_t n_vocab) {
  std::vector<int32_t> ids(count);
  for (uint32_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>((uint64_t{i} * 7919 + 13) % n_vocab);
  return ids;
}

uint32_t depth_of(const BenchTest& test) { return test.n_gen > 0 ? std::max(test.depth, 1u) : test.depth; }

// One repetition: the seconds of its timed part.
Result<double> run_once(Session& session, const BenchTest& test, uint32_t n_batch) {
  const uint32_t n_vocab = session.model().info().n_vocab;
  MINFER_TRY(session.rollback(0, 0));
  if (const uint32_t depth = depth_of(test)) {
    MINFER_TRY(prefill(session, 0, synthetic_tokens(depth, n_vocab), n_batch, 0).status());
  }
  const std::vector<int32_t> prompt = synthetic_tokens(test.n_prompt, n_vocab);
  const std::vector<int32_t> generated = synthetic_tokens(test.n_gen, n_vocab);
  const auto start = Clock::now();
  if (test.n_prompt > 0) {
    MINFER_TRY(prefill(session, 0, prompt, n_batch, 1).status());
  }
  for (uint32_t i = 0; i < test.n_gen; ++i) {
    const SeqChunk chunk{0, {&generated[i], 1}, 1};
    MINFER_TRY(session.forward({&chunk, 1}).status());
  }
  return seconds_since(start);
}

}  // namespace

uint32_t positions_of(const BenchTest& test) { return depth_of(test) + test.n_prompt + test.n_gen; }

Result<std::vector<double>> bench(Session& session, const BenchTest& test, const BenchOptions& options) {
  if ((test.n_prompt == 0) == (test.n_gen == 0)) return invalid("a test has either prompt or generated tokens");
  const auto warmup_start = Clock::now();
  const uint32_t steps_per_run = (test.n_prompt + options.n_batch - 1) / options.n_batch + test.n_gen;
  uint32_t n_steps = 0;
  do {  // two steps at least: a backend may pack weights when they are used again
    MINFER_TRY(run_once(session, test, options.n_batch).status());
    n_steps += steps_per_run;
  } while (n_steps < 2 || seconds_since(warmup_start) < options.warmup_s);
  std::vector<double> samples;
  for (uint32_t r = 0; r < options.repetitions; ++r) {
    MINFER_ASSIGN(const double seconds, run_once(session, test, options.n_batch));
    samples.push_back((test.n_prompt + test.n_gen) / seconds);
  }
  return samples;
}

MeanDeviation mean_deviation(const std::vector<double>& samples) {
  MeanDeviation result;
  if (samples.empty()) return result;
  for (const double x : samples) result.mean += x;
  result.mean /= static_cast<double>(samples.size());
  if (samples.size() < 2) return result;
  double squares = 0;
  for (const double x : samples) squares += (x - result.mean) * (x - result.mean);
  result.deviation = std::sqrt(squares / static_cast<double>(samples.size() - 1));
  return result;
}

}  // namespace minfer
