// Values as JSON text, byte for byte as Python's json.dumps writes them. Knows nothing of any JSON library.
#pragma once

#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level; absent: on one line
  std::string item_separator = ", ";  // json.dumps: "," when indent is given
  std::string key_separator = ": ";
};

Result<std::string> dump_json(Runtime& rt, const Value& value, const JsonStyle& style);

}  // namespace minfer::jinja
