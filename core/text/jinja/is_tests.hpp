// The tests of templates ({{ value is name(arguments) }}), found by name when a template is parsed.
#pragma once

#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

using Test = Result<bool> (*)(Runtime&, const Value& value, const Args& args);

// Null when there is no such test.
Test find_test(std::string_view name);

}  // namespace minfer::jinja
