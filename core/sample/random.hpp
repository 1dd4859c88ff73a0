// The random numbers of sampling: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
// The same seed gives the same numbers on every machine. Knows nothing of tokens.
#pragma once

#include <cstdint>

namespace minfer::sample {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, 1): the top 24 bits of next(), exact in f32.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }

  // All there is to it: SplitMix64(state()) goes on with the same numbers.
  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace minfer::sample
