// The typed getters of Metadata.
#include "gguf/metadata.hpp"

#include <string>

#include "base/utf8.hpp"

namespace minfer::gguf {
namespace {

// "u32", "array of string"
std::string type_text(const Value& value) {
  if (value.type != ValueType::kArray) return std::string(value_type_name(value.type));
  return text("array of {}", value_type_name(value.element_type));
}

Error missing(std::string_view key, std::string_view expected) {
  return not_found("metadata key {} is missing (expected {})", quote(key), expected);
}

Error wrong_type(const Value& value, std::string_view expected) {
  return invalid("metadata key {} has type {}, expected {}", quote(value.name), type_text(value), expected);
}

// The value of a key that satisfies `accepts`.
template <class Accepts>
Result<const Value*> typed(const Metadata& metadata, std::string_view key, std::string_view expected, Accepts accepts) {
  const Value* value = metadata.find(key);
  if (!value) return missing(key, expected);
  if (!accepts(*value)) return wrong_type(*value, expected);
  return value;
}

// An integer of any type as sign and 64 bits.
struct Integer {
  bool negative;
  uint64_t bits;  // two's complement when negative
};

Result<Integer> integer(const Metadata& metadata, std::string_view key) {
  MINFER_ASSIGN(const Value* value, typed(metadata, key, "an integer", [](const Value& v) { return is_integer(v.type); }));
  const int64_t loaded = load_integer(value->type, value->bytes.data());
  return Integer{value->type != ValueType::kU64 && loaded < 0, static_cast<uint64_t>(loaded)};
}

Result<uint64_t> unsigned_up_to(const Metadata& metadata, std::string_view key, uint64_t largest) {
  MINFER_ASSIGN(const Integer number, integer(metadata, key));
  if (number.negative)
    return invalid("metadata key {} is {}, expected an integer of at least 0", quote(key), static_cast<int64_t>(number.bits));
  if (number.bits > largest) return invalid("metadata key {} is {}, expected at most {}", quote(key), number.bits, largest);
  return number.bits;
}

bool is_array_of(const Value& value, bool (*accepts)(ValueType)) { return value.type == ValueType::kArray && accepts(value.element_type); }

}  // namespace

Result<uint64_t> Metadata::u64(std::string_view key) const { return unsigned_up_to(*this, key, UINT64_MAX); }

Result<uint32_t> Metadata::u32(std::string_view key) const {
  MINFER_ASSIGN(const uint64_t value, unsigned_up_to(*this, key, UINT32_MAX));
  return static_cast<uint32_t>(value);
}

Result<int64_t> Metadata::i64(std::string_view key) const {
  MINFER_ASSIGN(const Integer number, integer(*this, key));
  if (!number.negative && number.bits > INT64_MAX)
    return invalid("metadata key {} is {}, expected at most {}", quote(key), number.bits, INT64_MAX);
  return static_cast<int64_t>(number.bits);
}

Result<double> Metadata::f64(std::string_view key) const {
  MINFER_ASSIGN(const Value* value, typed(*this, key, "a float", [](const Value& v) { return is_float(v.type); }));
  return load_float(value->type, value->bytes.data());
}

Result<bool> Metadata::boolean(std::string_view key) const {
  MINFER_ASSIGN(const Value* value, typed(*this, key, "a bool", [](const Value& v) { return v.type == ValueType::kBool; }));
  return value->bytes[0] != std::byte{0};
}

Result<std::string_view> Metadata::string(std::string_view key) const {
  MINFER_ASSIGN(const Value* value, typed(*this, key, "a string", [](const Value& v) { return v.type == ValueType::kString; }));
  return value->string();
}

Result<StringArray> Metadata::strings(std::string_view key) const {
  MINFER_ASSIGN(const Value* value, typed(*this, key, "an array of strings", [](const Value& v) {
                  return is_array_of(v, [](ValueType t) { return t == ValueType::kString; });
                }));
  return StringArray(*value);
}

Result<IntArray> Metadata::ints(std::string_view key) const {
  MINFER_ASSIGN(const Value* value, typed(*this, key, "an array of integers", [](const Value& v) { return is_array_of(v, is_integer); }));
  if (value->element_type == ValueType::kU64) {
    for (uint64_t i = 0; i < value->count; ++i) {
      const auto element = load<uint64_t>(value->bytes.data() + 8 * i);
      if (element > INT64_MAX) return invalid("metadata key {}: element {} is {}, expected at most {}", quote(key), i, element, INT64_MAX);
    }
  }
  return IntArray(*value);
}

Result<FloatArray> Metadata::floats(std::string_view key) const {
  MINFER_ASSIGN(const Value* value, typed(*this, key, "an array of floats", [](const Value& v) { return is_array_of(v, is_float); }));
  return FloatArray(*value);
}

}  // namespace minfer::gguf
