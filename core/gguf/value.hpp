// A metadata value as it lies in the file: a type and a view of bytes, checked by the parser, copied by nobody.
// The views and arrays here are valid as long as the mapping they came from.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

namespace minfer::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF files are read in place: little-endian systems only");

// Values are the ids that stand in files.
enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
inline constexpr uint32_t kValueTypeCount = 13;

// Bytes of one value; 0 for strings and arrays, whose size stands in the file.
constexpr uint32_t fixed_size(ValueType type) {
  constexpr uint8_t kSizes[kValueTypeCount] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<uint32_t>(type)];
}
constexpr std::string_view value_type_name(ValueType type) {
  constexpr std::string_view kNames[kValueTypeCount] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                        "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<uint32_t>(type)];
}
constexpr bool is_integer(ValueType type) { return type <= ValueType::kI32 || type == ValueType::kU64 || type == ValueType::kI64; }
constexpr bool is_float(ValueType type) { return type == ValueType::kF32 || type == ValueType::kF64; }

// Reads at any address: values in files are not aligned.
template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// One metadata value.
struct Value {
  std::string_view name;                    // the key
  ValueType type = ValueType::kU8;          // of the value
  ValueType element_type = ValueType::kU8;  // of the elements, when type is kArray
  uint64_t count = 0;                       // elements, when type is kArray
  std::span<const std::byte> bytes;         // the value; a string without its length; the elements of an array

  std::string_view string() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// An integer of type u64 above INT64_MAX wraps here; the getters of Metadata check first.
inline int64_t load_integer(ValueType type, const std::byte* at) {
  switch (type) {
    case ValueType::kU8: return load<uint8_t>(at);
    case ValueType::kI8: return load<int8_t>(at);
    case ValueType::kU16: return load<uint16_t>(at);
    case ValueType::kI16: return load<int16_t>(at);
    case ValueType::kU32: return load<uint32_t>(at);
    case ValueType::kI32: return load<int32_t>(at);
    default: return load<int64_t>(at);
  }
}
inline double load_float(ValueType type, const std::byte* at) {
  return type == ValueType::kF32 ? static_cast<double>(load<float>(at)) : load<double>(at);
}

// An array of integers of any width, or of floats, by index.
template <class Element, Element (*kLoad)(ValueType, const std::byte*)>
class NumberArray {
 public:
  NumberArray() = default;
  explicit NumberArray(const Value& value) : type_(value.element_type), size_(value.count), data_(value.bytes.data()) {}
  size_t size() const { return size_; }
  Element operator[](size_t i) const { return kLoad(type_, data_ + i * fixed_size(type_)); }

 private:
  ValueType type_ = ValueType::kU8;
  size_t size_ = 0;
  const std::byte* data_ = nullptr;
};
using IntArray = NumberArray<int64_t, load_integer>;
using FloatArray = NumberArray<double, load_float>;

// An array of strings, in order: each string is found behind the one before it. The lengths were checked when the file was opened; should
// the file lose its pages since, they read as zeros, and the iteration still ends at the end.
class StringArray {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    explicit Iterator(std::span<const std::byte> rest) : rest_(rest) {}
    std::string_view operator*() const { return {reinterpret_cast<const char*>(rest_.data() + 8), length()}; }
    Iterator& operator++() {
      rest_ = rest_.subspan(8 + length());
      if (rest_.size() < 8) rest_ = rest_.last(0);
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.rest_.data() == b.rest_.data(); }

   private:
    uint64_t length() const { return std::min<uint64_t>(load<uint64_t>(rest_.data()), rest_.size() - 8); }

    std::span<const std::byte> rest_;
  };

  StringArray() = default;
  explicit StringArray(const Value& value) : size_(value.count), bytes_(value.bytes) {}
  size_t size() const { return size_; }
  Iterator begin() const { return Iterator(bytes_); }
  Iterator end() const { return Iterator(bytes_.last(0)); }

 private:
  size_t size_ = 0;
  std::span<const std::byte> bytes_;
};

}  // namespace minfer::gguf
