// Operations on plain strings shared by the methods of str and the filters. Knows nothing of values beyond the limits.
#pragma once

#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

// limit < 0: no limit. A separator is not empty.
std::vector<std::string> split(std::string_view s, std::string_view sep, int64_t limit);
std::vector<std::string> rsplit(std::string_view s, std::string_view sep, int64_t limit);
std::vector<std::string> split_space(std::string_view s, int64_t limit);
std::vector<std::string> rsplit_space(std::string_view s, int64_t limit);

Result<std::string> replace(Runtime& rt, std::string_view s, std::string_view from, std::string_view to, int64_t count);
// Padded to `width` characters; align '<', '>' or '^' as str.ljust, rjust, center.
Result<std::string> justify(Runtime& rt, std::string_view s, int64_t width, char align, std::string_view fill);

std::string swap_case(std::string_view s);
bool is_lower_text(std::string_view s);
bool is_upper_text(std::string_view s);

}  // namespace minfer::jinja
