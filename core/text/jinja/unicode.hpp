// Characters of UTF-8 text as Python's str sees them: code points, classes and case. Knows nothing of values.
// A byte that is not part of valid UTF-8 becomes U+DC80 + (byte - 0x80) and back, so that nothing is lost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace minfer::jinja {

std::u32string code_points(std::string_view utf8);
std::string to_utf8(std::u32string_view text);
void append_utf8(std::string& out, char32_t c);
bool is_ascii(std::string_view s);
size_t char_count(std::string_view utf8);

bool is_space(char32_t c);       // str.isspace, regular expression \s
bool is_line_break(char32_t c);  // str.splitlines
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);  // category Nd
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_alnum(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_printable(char32_t c);
bool is_word(char32_t c);  // \w

// Simple case mappings, and the one expansion in common use (sharp s to SS).
std::string upper(std::string_view s);
std::string lower(std::string_view s);
std::string capitalize(std::string_view s);
std::string title(std::string_view s);  // str.title

std::vector<std::string> split_lines(std::string_view s, bool keep_ends = false);
// Without leading or trailing characters of `chars` (null: whitespace).
std::string_view strip(std::string_view s, bool left, bool right, const std::string* chars = nullptr);

}  // namespace minfer::jinja
