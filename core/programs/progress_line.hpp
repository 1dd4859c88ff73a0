// One line on standard error that tells how far long work is, rewritten in place and erased before anything else is said there.
// Only on a terminal, only behind half a second of work, and never wider than the terminal. Knows nothing of what the work is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace minfer::programs {

// What a progress line needs of the terminal and the clock; tests put their own in its place.
struct ProgressTerminal {
  std::function<double()> seconds;
  std::function<unsigned()> columns;  // 0: not known
  std::function<void(std::string_view bytes)> write;
};
// Standard error, if that is a terminal that can rewrite a line.
std::optional<ProgressTerminal> progress_terminal();

// One thread at a time, one visible line per process.
class ProgressLine {
 public:
  enum class Unit { kBytes, kTokens };

  // "Loading": `what` begins the line. Without a terminal nothing is ever shown.
  ProgressLine(std::string what, Unit unit, std::optional<ProgressTerminal> terminal);
  ~ProgressLine() { erase(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Nothing done yet: the work begins. All done: the line goes.
  void update(uint64_t done, uint64_t total);
  // Time has passed: shows the work that has not come as far as its first update.
  void tick();
  void erase();

 private:
  void draw(double now);
  std::string line(double now) const;

  std::string what_;
  Unit unit_;
  std::optional<ProgressTerminal> terminal_;
  bool working_ = false;
  bool visible_ = false;
  double begun_ = 0;
  double came_here_ = 0;  // when done_ was last reached: the rate is of that time
  double drawn_ = 0;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

// Takes the visible line away, if there is one: called by whatever else writes lines for people.
void erase_progress_line();

}  // namespace minfer::programs
