// Parses one GGUF file (versions 2 and 3, little-endian) that lies in memory. Reads no files, knows no architecture.
// Every length, count, product and offset is checked against the bytes that remain before it is used, and what is allocated
// stays within a small multiple of the file's size. Source: the format description in the ggml repository (docs/gguf.md);
// stricter than it in that keys and names must be unique, bools 0 or 1, arrays not nested, and data without gaps.
// Bytes behind the last tensor are accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "gguf/metadata.hpp"
#include "gguf/tensor.hpp"

namespace minfer::gguf {

// All views point into the bytes that were parsed.
struct FileContents {
  uint32_t version = 0;
  uint64_t alignment = 0;
  Metadata metadata;
  TensorList tensors;
};

// The error names the field, key or tensor; the caller adds the path.
Result<FileContents> parse_file(std::span<const std::byte> file);

}  // namespace minfer::gguf
