// Text of metadata values.
#include "gguf/describe.hpp"

#include <charconv>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace minfer::gguf {
namespace {

// The shortest digits that read back as the same number.
template <class T>
std::string number_text(const std::byte* at) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, load<T>(at)).ptr;
  return {digits, end};
}

std::string scalar_text(ValueType type, const std::byte* at) {
  switch (type) {
    case ValueType::kBool: return *at == std::byte{0} ? "false" : "true";
    case ValueType::kF32: return number_text<float>(at);
    case ValueType::kF64: return number_text<double>(at);
    case ValueType::kU64: return number_text<uint64_t>(at);
    default: return std::to_string(load_integer(type, at));
  }
}

constexpr size_t kMaxShownBytes = 65536;  // of a string
constexpr uint64_t kShownWhole = 8, kShownFirst = 5, kShownLast = 3;

// Calls show(i) for the elements that are printed, in order.
template <class Show>
std::string list_text(uint64_t count, Show show) {
  std::string out = "[";
  for (uint64_t i = 0; i < count; ++i) {
    if (i) out += ", ";
    if (count > kShownWhole && i == kShownFirst) {
      out += "..., ";
      i = count - kShownLast;
    }
    out += show(i);
  }
  out += ']';
  if (count > kShownWhole) out += text(" ({} elements)", count);
  return out;
}

}  // namespace

std::string dims_text(std::span<const uint64_t> dims) {
  std::string out = "[";
  for (const uint64_t dim : dims) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(dim);
  }
  return out + "]";
}

std::string describe_value(const Value& value) {
  if (value.type == ValueType::kString) return quote(value.string(), kMaxShownBytes);
  if (value.type != ValueType::kArray) return scalar_text(value.type, value.bytes.data());
  if (value.element_type == ValueType::kString) {
    auto string = StringArray(value).begin();
    uint64_t at = 0;
    return list_text(value.count, [&](uint64_t i) {
      for (; at < i; ++at) ++string;
      return quote(*string, 40);
    });
  }
  const uint32_t size = fixed_size(value.element_type);
  return list_text(value.count, [&](uint64_t i) { return scalar_text(value.element_type, value.bytes.data() + i * size); });
}

}  // namespace minfer::gguf
