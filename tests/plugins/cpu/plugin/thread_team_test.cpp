// The team of threads: everyone runs, barriers hold, and it can be made and ended at any time.
#include <sched.h>

#include <catch2/catch.hpp>
#include <vector>

#include "thread_team.hpp"

using minfer::cpu::ThreadTeam;

TEST_CASE("cpu/thread_team: every thread runs the body once and sees at a barrier what the others wrote") {
  for (const unsigned n : {1u, 2u, 3u, 8u}) {
    ThreadTeam team(n);
    REQUIRE(team.size() == n);
    std::vector<uint64_t> mine(n, 0), sums(n, 0);  // plain memory: only barriers order it
    std::vector<int> wrong(n, 0);
    constexpr uint64_t kRounds = 200;
    for (int run = 0; run < 5; ++run) {
      const uint64_t before = team.barriers();
      team.run([&](unsigned thread) {
        for (uint64_t round = 1; round <= kRounds; ++round) {
          mine[thread] = round * (thread + 1);
          team.barrier();
          uint64_t sum = 0;
          for (uint64_t value : mine) sum += value;
          sums[thread] = sum;
          wrong[thread] += sum != round * n * (n + 1) / 2;
          team.barrier();
        }
      });
      CHECK(wrong == std::vector<int>(n, 0));
      CHECK(sums == std::vector<uint64_t>(n, kRounds * n * (n + 1) / 2));
      // Two in each round; the one at the end of the run only where there are helpers to wait for.
      CHECK(team.barriers() - before == 2 * kRounds + (n > 1));
    }
  }
}

TEST_CASE("cpu/thread_team: many more threads than CPUs finish") {
  ThreadTeam team(4 * minfer::cpu::usable_cpus() + 5);
  std::vector<uint64_t> counts(team.size(), 0);
  for (int run = 0; run < 20; ++run)
    team.run([&](unsigned thread) {
      for (int i = 0; i < 10; ++i) {
        ++counts[thread];
        team.barrier();
      }
    });
  CHECK(counts == std::vector<uint64_t>(team.size(), 200));
}

TEST_CASE("cpu/thread_team: a team can be made and ended many times and used or not") {
  uint64_t total = 0;
  for (int i = 0; i < 300; ++i) {
    ThreadTeam team(1 + static_cast<unsigned>(i) % 4);
    std::vector<uint64_t> ran(team.size(), 0);
    for (int run = 0; run < i % 3; ++run) team.run([&](unsigned thread) { ++ran[thread]; });
    for (uint64_t count : ran) total += count;
  }
  // 300 teams of 1, 2, 3, 4 threads in turn, run 0, 1, 2 times in turn: mean 2.5 threads times mean 1 run.
  CHECK(total == 750);
}

TEST_CASE("cpu/thread_team: an idle team wakes after it has gone to sleep") {
  ThreadTeam team(3);
  std::vector<int> ran(3, 0);
  for (int run = 0; run < 3; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than it spins
    team.run([&](unsigned thread) { ++ran[thread]; });
  }
  CHECK(ran == std::vector<int>(3, 3));
}

TEST_CASE("cpu/thread_team: the CPUs that may be used are those of the affinity mask") {
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  const unsigned before = minfer::cpu::usable_cpus();
  CHECK(before >= 1);
  CHECK(before <= static_cast<unsigned>(CPU_COUNT(&all)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const unsigned pinned = minfer::cpu::usable_cpus();
  REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
  CHECK(pinned == 1);
  CHECK(minfer::cpu::usable_cpus() == before);
}
