// How a phase hands out its work.
#include "phase.hpp"

#include <catch2/catch.hpp>
#include <mutex>
#include <utility>

using namespace minfer::cpu;

namespace {

constexpr size_t kUnit = 4;

// Hands out n_items in ranges, the long ones of whole units, and writes down which.
class RangesPhase final : public Phase {
 public:
  explicit RangesPhase(size_t n_items) : n_items_(n_items) {}
  void run(const Worker& worker) override {
    share_ranges(worker, n_items_, kUnit, [this](size_t begin, size_t end) {
      const std::lock_guard lock(mutex_);
      ranges_.emplace_back(begin, end);
    });
  }
  std::vector<std::pair<size_t, size_t>> take_sorted() {
    std::sort(ranges_.begin(), ranges_.end());
    return std::exchange(ranges_, {});
  }

 private:
  const size_t n_items_;
  std::mutex mutex_;
  std::vector<std::pair<size_t, size_t>> ranges_;
};

}  // namespace

TEST_CASE("cpu/phase: ranges cover every item once, in every run, and become shorter, in whole units", "[cpu]") {
  const Kernels kernels{op_kernels(Isa::kBaseline), matmul_kernels(Isa::kBaseline)};
  const RunState state;
  Failure failure;
  for (const unsigned n_threads : {1u, 2u, 5u}) {
    ThreadTeam team(n_threads);
    for (const size_t n_items : {0, 1, 7, 64, 1002}) {
      RangesPhase phase(n_items);
      for (int run = 0; run < 3; ++run) {
        phase.begin_run();
        team.run([&](unsigned thread) { phase.run({kernels, state, failure, thread, n_threads, 0, nullptr, {nullptr, nullptr}}); });
        const auto ranges = phase.take_sorted();
        INFO(n_threads << " threads, " << n_items << " items, run " << run);
        size_t next = 0, last_length = n_items;
        for (const auto& [begin, end] : ranges) {
          REQUIRE(begin == next);
          REQUIRE(end > begin);
          if (end - begin > 2 * kUnit && end != n_items) CHECK((end - begin) % kUnit == 0);
          CHECK(end - begin <= last_length);
          last_length = end - begin;
          next = end;
        }
        CHECK(next == n_items);
        if (n_items == 1002) {  // seven eighths of an even share come first: 438.4 of 501, 175.4 of 200.4, and then to whole units
          CHECK(ranges.front().second == (n_threads == 1 ? 1002 : n_threads == 2 ? 440 : 176));
          if (n_threads > 1) CHECK(last_length == 1);
        }
        if (n_items == 64) CHECK(ranges.front().second == (n_threads == 1 ? 64 : n_threads == 2 ? 28 : 12));  // 28 and 11.2
      }
    }
  }
}
