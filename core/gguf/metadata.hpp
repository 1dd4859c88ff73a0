// The metadata of a model file: keys, values, and typed access with errors that name the key.
// Knows the types of values, not the meaning of any key.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "gguf/named_list.hpp"
#include "gguf/value.hpp"

namespace minfer::gguf {

// Views into a mapping that must outlive it. Const members may be called from any thread.
// Every getter refuses a missing key (ErrorCode::kNotFound) and a value of another type (ErrorCode::kInvalidArgument), naming
// the key, the type expected and the type found. Integer getters take any integer type whose value fits. No other conversion
// is made: an integer is no float, a number is no bool.
class Metadata {
 public:
  const Value* find(std::string_view key) const { return values_.find(key); }
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  Result<uint64_t> u64(std::string_view key) const;
  Result<uint32_t> u32(std::string_view key) const;
  Result<int64_t> i64(std::string_view key) const;
  Result<double> f64(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string_view> string(std::string_view key) const;
  Result<StringArray> strings(std::string_view key) const;
  Result<IntArray> ints(std::string_view key) const;
  Result<FloatArray> floats(std::string_view key) const;

  // In file order.
  const NamedList<Value>& values() const { return values_; }

  // False when the key is there already.
  bool add(const Value& value) { return values_.add(value); }

 private:
  NamedList<Value> values_;
};

// The value, or `fallback` where the key is missing. A key of the wrong type stays an error:
//   MINFER_ASSIGN(const uint64_t n, or_default(metadata.u64("general.alignment"), 32));
template <class T>
Result<T> or_default(Result<T> result, T fallback) {
  if (!result.ok() && result.error().code == ErrorCode::kNotFound) return fallback;
  return result;
}

}  // namespace minfer::gguf
