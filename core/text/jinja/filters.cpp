// Lookup of filters, and the helpers that several of them share.
#include "text/jinja/filters.hpp"

#include "text/jinja/attributes.hpp"
#include "text/jinja/string_ops.hpp"
#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

Filter find_filter(std::string_view name) {
  for (const auto find : {find_text_filter, find_number_filter, find_sequence_filter, find_selection_filter}) {
    if (const Filter filter = find(name)) return filter;
  }
  return nullptr;
}

Result<Value> get_path(Runtime& rt, const Value& item, const std::optional<Value>& path) {
  if (!path || path->is_none()) return item;
  if (!path->is_string()) return get_item(rt, item, *path);
  Value value = item;
  for (const std::string& part : split(path->string(), ".", -1)) {
    const bool digits = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    MINFER_ASSIGN(value, get_item(rt, value, digits ? Value(std::stol(part)) : Value(part)));
  }
  return value;
}

Value fold_case(const Value& value) { return value.is_string() ? Value(lower(value.string())) : value; }

}  // namespace minfer::jinja
