// Metadata values and shapes as text for people, one line each.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "gguf/value.hpp"

namespace minfer::gguf {

// "32", "1e-05", "true", "'text'", "[1, 2, 3]". Of an array of more than 8 elements the first 5 and the last 3 are shown with
// the count; of a string as long as a chat template all is shown, in an array 40 bytes; control characters are escaped.
std::string describe_value(const Value& value);

// "[896, 4864]"
std::string dims_text(std::span<const uint64_t> dims);

}  // namespace minfer::gguf
