// What every operation of a running template may reach: the limits and what is spent of them, the clock, and the arguments' binder.
// Knows nothing of syntax. One Runtime per render; not thread-safe.
#pragma once

#include <ctime>
#include <initializer_list>

#include "text/jinja/value.hpp"

namespace minfer::jinja {

// A render that reaches one of these ends in an error that names it.
struct Limits {
  uint64_t max_steps = 20'000'000;          // nodes evaluated, items made; 64 bytes of text made count as one
  uint64_t max_output_bytes = 64ull << 20;  // the rendered text, and any one string on the way
  uint32_t max_depth = 1200;                // nested evaluation: expressions, blocks, macro calls, values inside values
  uint64_t max_range = 100'000;             // items of range(), as Jinja's sandbox
};

class Runtime {
 public:
  Runtime(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Status charge(uint64_t steps);
  // To be called before a string of this size is made.
  Status charge_bytes(uint64_t bytes);
  // Objects that can come to contain themselves are kept to the end of the render and emptied there.
  void keep(const Value& container);

  const Limits& limits() const { return limits_; }
  const std::tm& now() const { return now_; }

 private:
  friend class DepthGuard;
  const Limits& limits_;
  std::tm now_;
  uint64_t steps_ = 0;
  uint32_t depth_ = 0;
  std::vector<Value> kept_;
};

// Counts one level of nesting for its scope.
class DepthGuard {
 public:
  explicit DepthGuard(Runtime& rt) : rt_(rt) { ++rt_.depth_; }
  ~DepthGuard() { --rt_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  Status status() const;

 private:
  Runtime& rt_;
};

// Arguments of a call put to the names of its parameters, as Python does; an absent one is nullopt.
using Bound = std::vector<std::optional<Value>>;
Result<Bound> bind(const Args& args, std::string_view function, std::initializer_list<std::string_view> names, size_t required = 0);

Result<int64_t> int_or(const std::optional<Value>& value, int64_t fallback, std::string_view what);
Result<std::string> string_or(const std::optional<Value>& value, std::string_view fallback, std::string_view what);
bool bool_or(const std::optional<Value>& value, bool fallback);

}  // namespace minfer::jinja
