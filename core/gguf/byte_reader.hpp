// A position in the bytes of a file. Nothing is read, and no position moves, beyond the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "gguf/value.hpp"

namespace minfer::gguf {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> file) : file_(file) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return file_.size() - position_; }

  // `field` names what is read in the message of a file that ends too early.
  template <class T>
  Result<T> read(std::string_view field) {
    MINFER_ASSIGN(const auto bytes, take(sizeof(T), field));
    return load<T>(bytes.data());
  }

  Result<std::span<const std::byte>> take(uint64_t length, std::string_view field) {
    if (length > remaining())
      return invalid("{} at offset {} needs {} bytes, but only {} remain in the file", field, position_, length, remaining());
    const auto bytes = file_.subspan(position_, length);
    position_ += length;
    return bytes;
  }

  // A u64 length and that many bytes.
  Result<std::string_view> string(std::string_view field) {
    const uint64_t start = position_;
    MINFER_ASSIGN(const uint64_t length, read<uint64_t>(field));
    if (length > remaining())
      return invalid("{} at offset {} has length {}, but only {} bytes remain in the file", field, start, length, remaining());
    MINFER_ASSIGN(const auto bytes, take(length, field));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

 private:
  std::span<const std::byte> file_;
  uint64_t position_ = 0;
};

}  // namespace minfer::gguf
