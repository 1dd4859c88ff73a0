// Python's text formatting: "{} {name:>8}".format(...), "%s %05.2f" % values. Knows nothing of templates.
#pragma once

#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

Result<Value> format_percent(Runtime& rt, std::string_view pattern, const Value& values);
Result<Value> format_braces(Runtime& rt, std::string_view pattern, const Args& args);

}  // namespace minfer::jinja
