// What this machine can do at best: the clock, reading memory, multiplying small integers. Speeds are judged against these figures,
// which are measured here and now; it knows nothing of models or backends.
#pragma once

#include <cstdint>
#include <string>

namespace minfer {

// A figure that cannot be measured on this kind of machine is 0.
struct MachineCeilings {
  unsigned threads = 1;
  double clock_ghz = 0;  // from a loop of dependent additions: one per cycle
  double read_gb_s = 0;  // all threads together, 512 MB in large pages, the best number of streams and prefetch distance

  // Multiply-accumulates of 8-bit integers per cycle on one core, registers only, where n products of a lane may be added up before the
  // sum has to be widened.
  std::string instruction;  // "vpdpbusd", which widens at no cost, or "vpmaddubsw"
  double macs_per_cycle_1 = 0;
  double macs_per_cycle_4 = 0;
  double macs_per_cycle_8 = 0;

  // The figure for weights of `bits` bits and activations of 8: what a signed 16-bit lane holds decides how many products fit.
  double macs_per_cycle(unsigned bits) const;
};

// GHz of one core by additions that wait for each other, one per cycle; the best of short runs, 50 ms together. 0 where it is not known
// how to.
double measure_clock_ghz();

// Takes about two seconds of all threads.
MachineCeilings measure_ceilings(unsigned threads);

}  // namespace minfer
