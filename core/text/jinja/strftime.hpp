// Dates as text, as Python's datetime.strftime under the C locale: month names are English whatever the machine's locale.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace minfer::jinja {

// `time` has no zone, as datetime.now(): %z and %Z are empty. Unknown directives stay as they are.
std::string format_time(std::string_view format, const std::tm& time);

}  // namespace minfer::jinja
