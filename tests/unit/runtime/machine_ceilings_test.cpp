// The bound that a mix of weight types has. The measured figures are the machine's; what is asked of them is that they can be true.
#include <catch2/catch.hpp>

#include "runtime/step_work.hpp"

using namespace minfer;

TEST_CASE("runtime/ceilings: a mix of weight types is bound by the cycles that each part needs", "[runtime]") {
  MachineCeilings machine;
  machine.macs_per_cycle_1 = 8;
  machine.macs_per_cycle_4 = 12;
  machine.macs_per_cycle_8 = 16;
  CHECK(machine.macs_per_cycle(4) == 16);
  CHECK(machine.macs_per_cycle(5) == 16);  // 8 sums of two products of at most 16 * 127 fit a signed 16-bit lane, 16 do not
  CHECK(machine.macs_per_cycle(6) == 12);
  CHECK(machine.macs_per_cycle(8) == 8);
  StepWork work;
  work.macs = {{gguf::TensorType::kQ5_0, 3200}, {gguf::TensorType::kQ6_K, 1200}, {gguf::TensorType::kQ8_0, 800}};
  CHECK(work.total_macs() == 5200);
  CHECK(integer_bound(work, machine) == Approx(5200.0 / (200 + 100 + 100)));
  work.macs[gguf::TensorType::kF16] = 1;
  CHECK(integer_bound(work, machine) == 0);
}

TEST_CASE("runtime/ceilings: this machine's figures agree with each other", "[runtime]") {
  const MachineCeilings machine = measure_ceilings(1);
  CHECK(machine.threads == 1);
  CHECK(machine.read_gb_s > 0.05);
  CHECK(machine.read_gb_s < 5000);
  if (!machine.instruction.empty()) {
    CHECK(machine.clock_ghz > 0.05);
    CHECK(machine.macs_per_cycle_1 > 1);
    CHECK(machine.macs_per_cycle_8 < 1024);
  }
}
