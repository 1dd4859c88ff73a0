// Key-value pairs of a GGUF file. A value of unknown size ends the reading, so every type must be known.
#include <algorithm>

#include "base/utf8.hpp"
#include "gguf/parse.hpp"

namespace minfer::gguf {
namespace {

constexpr uint64_t kSmallestPair = 8 + 1 + 4 + 1;  // length of the key, one byte of key, type, a u8

Result<ValueType> read_type(ByteReader& reader, std::string_view field) {
  const uint64_t offset = reader.position();
  MINFER_ASSIGN(const uint32_t id, reader.read<uint32_t>(field));
  if (id >= kValueTypeCount) return invalid("{} at offset {} is {}, which is no GGUF value type", field, offset, id);
  return static_cast<ValueType>(id);
}

Status check_bools(std::span<const std::byte> bytes) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad != bytes.end()) return invalid("a bool is {}, expected 0 or 1", static_cast<uint8_t>(*bad));
  return {};
}

Result<std::span<const std::byte>> read_array(ByteReader& reader, Value& value) {
  MINFER_ASSIGN(value.element_type, read_type(reader, "the element type"));
  if (value.element_type == ValueType::kArray) return invalid("arrays of arrays are not supported");
  const uint64_t offset = reader.position();
  MINFER_ASSIGN(value.count, reader.read<uint64_t>("the array length"));
  const uint32_t size = fixed_size(value.element_type);
  const uint64_t smallest = size ? size : 8;  // an empty string is its length
  if (value.count > reader.remaining() / smallest)
    return invalid("the array length at offset {} is {} elements of {}, but only {} bytes remain in the file", offset, value.count,
                   value_type_name(value.element_type), reader.remaining());
  if (size) return reader.take(value.count * size, "the array");
  ByteReader strings = reader;
  for (uint64_t i = 0; i < value.count; ++i)
    if (const auto string = strings.string("a string of the array"); !string.ok()) return string.error().in(text("element {}", i));
  return reader.take(strings.position() - reader.position(), "the array");
}

Status read_value(ByteReader& reader, Value& value) {
  MINFER_ASSIGN(value.type, read_type(reader, "the value type"));
  if (value.type == ValueType::kString) {
    MINFER_ASSIGN(const std::string_view string, reader.string("the string"));
    value.bytes = std::as_bytes(std::span(string));
    return {};
  }
  if (value.type == ValueType::kArray) {
    MINFER_ASSIGN(value.bytes, read_array(reader, value));
  } else {
    MINFER_ASSIGN(value.bytes, reader.take(fixed_size(value.type), "the value"));
  }
  const bool holds_bools = value.type == ValueType::kBool || (value.type == ValueType::kArray && value.element_type == ValueType::kBool);
  return holds_bools ? check_bools(value.bytes) : Status();
}

}  // namespace

Result<Metadata> parse_metadata(ByteReader& reader, uint64_t count) {
  if (count > reader.remaining() / kSmallestPair)
    return invalid("header: key count at offset 16 is {}, but only {} bytes remain in the file", count, reader.remaining());
  Metadata metadata;  // grows with what is read: a count is no reason to allocate
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t offset = reader.position();
    const std::string place = text("metadata key {} of {}", i + 1, count);
    Value value;
    const auto key = reader.string("the name");
    if (!key.ok()) return key.error().in(place);
    value.name = *key;
    if (value.name.empty()) return invalid("{}: its name at offset {} is empty", place, offset);
    if (!is_valid_utf8(value.name)) return invalid("{}: its name at offset {}, {}, is not valid UTF-8", place, offset, quote(value.name));
    if (const Status status = read_value(reader, value); !status.ok()) return status.error().in(text("metadata key {}", quote(value.name)));
    if (!metadata.add(value)) return invalid("metadata key {} at offset {} appears twice", quote(value.name), offset);
  }
  return metadata;
}

}  // namespace minfer::gguf
