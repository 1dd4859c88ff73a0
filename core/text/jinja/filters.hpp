// The filters of templates ({{ value | name(arguments) }}), found by name when a template is parsed.
#pragma once

#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

using Filter = Result<Value> (*)(Runtime&, const Value& input, const Args& args);

// Null when there is no such filter.
Filter find_filter(std::string_view name);

struct FilterEntry {
  std::string_view name;
  Filter filter;
};
template <size_t kSize>
Filter find_in(const FilterEntry (&entries)[kSize], std::string_view name) {
  for (const FilterEntry& entry : entries) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

// The parts of the table, by kind.
Filter find_text_filter(std::string_view name);
Filter find_number_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);
Filter find_selection_filter(std::string_view name);

// value.a.b.0 by a dotted path, as map(attribute=...), sort(attribute=...) read it. An absent one is Undefined.
Result<Value> get_path(Runtime& rt, const Value& item, const std::optional<Value>& path);
// Strings in lower case, other values as they are: the key of case-insensitive sorting.
Value fold_case(const Value& value);

}  // namespace minfer::jinja
