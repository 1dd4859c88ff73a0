// The tables of minfer-bench: Markdown, CSV and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/machine_ceilings.hpp"

namespace minfer::programs {

// What a speed is of the machine's best, both as averages over a test.
struct Achieved {
  double gb_s = 0;                  // weights and KV read
  double gb_s_best = 0;             // that the machine reads with these threads
  double macs_per_cycle = 0;        // of 8-bit integers, per core
  double macs_per_cycle_bound = 0;  // the ceiling for the types of this model's weights; 0: not known
  double clock_ghz = 0;             // that cycles are counted by
};

struct BenchRow {
  std::string threads;  // a number or "auto"
  std::string test;
  std::vector<double> samples;       // tokens per second
  std::optional<Achieved> achieved;  // with --probe
};

struct BenchTable {
  std::string model;
  uint64_t bytes = 0;
  uint64_t parameters = 0;
  std::string backend;
  std::vector<MachineCeilings> ceilings;  // with --probe: for each number of threads
  std::vector<BenchRow> rows;
};

enum class BenchFormat { kMarkdown, kCsv, kJson };
std::string print_table(const BenchTable& table, BenchFormat format);

}  // namespace minfer::programs
