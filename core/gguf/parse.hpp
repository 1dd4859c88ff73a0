// The two tables behind the header of a GGUF file; used by reader.cpp only.
#pragma once

#include <cstdint>

#include "gguf/byte_reader.hpp"
#include "gguf/metadata.hpp"
#include "gguf/tensor.hpp"

namespace minfer::gguf {

// Reads `count` key-value pairs.
Result<Metadata> parse_metadata(ByteReader& reader, uint64_t count);

// Reads `count` tensor records; `file` is the whole file. The data section begins at the next multiple of `alignment` after
// the last record, tensors lie there in the order of their records, each padded to the alignment, without gaps.
Result<TensorList> parse_tensors(ByteReader& reader, uint64_t count, uint64_t alignment, std::span<const std::byte> file);

}  // namespace minfer::gguf
