// From the text of a template to its syntax tree, or the first error: "line 3: filter 'foo' is not supported".
// Unknown tags, filters and tests are refused here, by name. Knows nothing of rendering.
#pragma once

#include "text/jinja/ast.hpp"

namespace minfer::jinja {

Result<Body> parse_template(std::string_view source);

}  // namespace minfer::jinja
