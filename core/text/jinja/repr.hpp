// Values as text: Python's str() and repr(), and the shortest form of a float. Knows nothing of templates.
#pragma once

#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

// Python's repr(float): the shortest digits that read back as the same number.
std::string float_repr(double value);
// A string with Python's quotes and escapes.
std::string quoted(std::string_view s);

// str(value): what {{ value }} prints.
Result<std::string> to_str(Runtime& rt, const Value& value);
Result<std::string> repr(Runtime& rt, const Value& value);

}  // namespace minfer::jinja
