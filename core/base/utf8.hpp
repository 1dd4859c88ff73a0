// Is a text well-formed UTF-8 (RFC 3629)? And how to show bytes from a file in a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace minfer {

// Overlong forms, surrogates and code points above U+10FFFF are ill-formed.
bool is_valid_utf8(std::string_view text);

// 'text' in quotes, fit for one line of a message: control characters (U+0080 to U+009F too) and quotes are escaped, bytes that are
// not UTF-8 become \xNN, and a text of more than `max_bytes` bytes is cut with "..." and its length.
std::string quote(std::string_view text, size_t max_bytes = 100);

// A message from elsewhere made fit for one line: control characters and bytes that are not UTF-8 become escapes, nothing else changes.
std::string one_line(std::string_view text);

// The same for a text of several lines: newlines stay.
std::string printable(std::string_view text);

}  // namespace minfer
