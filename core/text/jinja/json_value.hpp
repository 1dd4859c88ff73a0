// Between JSON and template values: messages, tools and extra variables come in as JSON. The one place that knows nlohmann.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "text/jinja/value.hpp"

namespace minfer::jinja {

// Objects keep the order of their keys (hence ordered_json). Refused: nesting beyond 200 levels, integers beyond 64 bits.
Result<Value> from_json(const nlohmann::ordered_json& json);
Result<Value> parse_json(std::string_view text);

}  // namespace minfer::jinja
