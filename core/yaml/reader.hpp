// Checked reading of one mapping: typed values by key, ranges, choices; unknown keys are refused with the nearest name.
// The first failure is kept and returned by finish(); until then a getter that fails returns its fallback, so a section reads
//   Reader r(node);  c.n_batch = r.integer("n_batch", c.n_batch, {1, 65536});  ...  return r.finish();
// No value is converted in silence: "5" in quotes is text, 010, 0x10, 1_000 and .inf are no numbers, yes and on no booleans.
// Numbers are read the same in every locale. Not thread-safe; the node must outlive the reader.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "yaml/document.hpp"

namespace minfer::yaml {

// Both ends included. A bound at the end of its type counts as no bound in messages.
struct IntegerRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};
struct NumberRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
};

// One value without a key. The error names the place, what is expected and what was found.
[[nodiscard]] Result<std::string> read_string(const Node& node);
[[nodiscard]] Result<bool> read_boolean(const Node& node);
[[nodiscard]] Result<int64_t> read_integer(const Node& node, IntegerRange range = {});
[[nodiscard]] Result<uint64_t> read_unsigned(const Node& node);  // all of 64 bits
[[nodiscard]] Result<double> read_number(const Node& node, NumberRange range = {});
[[nodiscard]] Result<std::vector<std::string>> read_strings(const Node& node);

class Reader {
 public:
  explicit Reader(const Node& mapping);

  // Fails when one of these keys is absent.
  void require(std::initializer_list<std::string_view> keys);

  // Getters: the value of the key; `fallback` when the key is absent or wrong.
  std::string string(std::string_view key, std::string fallback) { return get(key, std::move(fallback), read_string); }
  bool boolean(std::string_view key, bool fallback) { return get(key, fallback, read_boolean); }
  template <std::integral T>
  T integer(std::string_view key, T fallback, IntegerRange range) {
    return get(key, fallback, [&](const Node& node) { return read_integer(node, range); });
  }
  uint64_t unsigned_integer(std::string_view key, uint64_t fallback) { return get(key, fallback, read_unsigned); }
  template <std::floating_point T>
  T number(std::string_view key, T fallback, NumberRange range) {
    range.min = std::max<double>(range.min, std::numeric_limits<T>::lowest());
    range.max = std::min<double>(range.max, std::numeric_limits<T>::max());
    return get(key, fallback, [&](const Node& node) { return read_number(node, range); });
  }
  std::vector<std::string> strings(std::string_view key, std::vector<std::string> fallback) {
    return get(key, std::move(fallback), read_strings);
  }
  // One of several words: r.choice("shift", shift, {{"off", Shift::kOff}, {"on", Shift::kOn}}).
  template <class T>
  T choice(std::string_view key, T fallback, std::initializer_list<std::pair<std::string_view, T>> choices) {
    std::vector<std::string_view> words;
    for (const auto& entry : choices) words.push_back(entry.first);
    const Node* found = node(key);
    const std::optional<size_t> index = found ? choose(*found, words) : std::nullopt;
    return index ? (choices.begin() + *index)->second : fallback;
  }
  // The value itself, for sections, lists and values of several forms; null when absent. Counts as known and used.
  const Node* node(std::string_view key);

  // Keeps `error` if it is the first one.
  void fail(Error error);
  void check(const Status& status) {
    if (!status.ok()) fail(status.error());
  }
  bool ok() const { return status_.ok(); }

  // The first failure; otherwise refuses a key that no getter asked for.
  [[nodiscard]] Status finish() const;

 private:
  template <class T, class Read>
  T get(std::string_view key, T fallback, Read read) {
    const Node* found = node(key);
    if (!found) return fallback;
    auto result = read(*found);
    if (result.ok()) return static_cast<T>(*std::move(result));
    fail(result.error());
    return fallback;
  }
  std::optional<size_t> choose(const Node& found, const std::vector<std::string_view>& words);

  const Node& mapping_;
  std::vector<std::string_view> known_;  // string literals of the callers
  Status status_;
};

}  // namespace minfer::yaml
