// Models split into several files: PREFIX-00001-of-00003.gguf and so on, keys split.no (from 0), split.count and
// split.tensors.count (of all parts). Names and checks only; model_file.cpp opens the parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "gguf/metadata.hpp"

namespace minfer::gguf {

struct SplitName {
  std::string prefix;
  uint32_t number = 0;  // from 1, as in the name
  uint32_t count = 0;
};

// nullopt: the name (without folder) is not that of a part. Numbers have five digits, 1 <= number <= count.
std::optional<SplitName> parse_split_name(std::string_view file_name);
std::string split_file_name(std::string_view prefix, uint32_t number, uint32_t count);

// split.count of a file; 1 where the key is missing.
Result<uint32_t> split_count(const Metadata& metadata);

// Is this file part `number` (from 1) of `count`, as its name says?
Status check_part(const Metadata& metadata, uint32_t number, uint32_t count);

// Adds the keys of a later part to those of the parts before it. A key that both have must have one value; split.no and
// general.alignment are each file's own.
Status merge_metadata(Metadata& merged, const Metadata& part);

// Every part's split.tensors.count, where it has one, is the number of tensors in all parts.
Status check_tensor_count(const Metadata& metadata, uint64_t tensors_found);

}  // namespace minfer::gguf
