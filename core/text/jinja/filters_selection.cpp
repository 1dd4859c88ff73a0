// Filters that apply a filter, an attribute or a test to every item: map, select, reject, selectattr, rejectattr; and attr.
#include <algorithm>

#include "text/jinja/attributes.hpp"
#include "text/jinja/filters.hpp"
#include "text/jinja/is_tests.hpp"
#include "text/jinja/operators.hpp"

namespace minfer::jinja {

namespace {

Value iterator(std::vector<Value> items) { return make_view(std::move(items), List::Kind::kIterator); }

// `args` without its first `n` positional arguments.
Args rest_of(const Args& args, size_t n) {
  Args rest;
  rest.positional.assign(args.positional.begin() + static_cast<std::ptrdiff_t>(n), args.positional.end());
  rest.keyword = args.keyword;
  return rest;
}

Result<Value> map_attribute(Runtime& rt, const std::vector<Value>& items, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "map", {"attribute", "default"}, 1));
  std::vector<Value> out;
  for (const Value& item : items) {
    MINFER_ASSIGN(Value value, get_path(rt, item, p[0]));
    if (value.is_undefined() && p[1] && !p[1]->is_none()) value = *p[1];
    out.push_back(std::move(value));
  }
  return iterator(std::move(out));
}

Result<Value> map(Runtime& rt, const Value& input, const Args& args) {
  if (!truthy(input)) return iterator({});  // None too
  MINFER_ASSIGN(const auto items, items_of(rt, input));
  if (args.positional.empty()) {
    const bool by_attribute = !args.keyword.empty() &&
                              std::any_of(args.keyword.begin(), args.keyword.end(), [](const auto& k) { return k.first == "attribute"; });
    if (!by_attribute) return invalid("needs the name of a filter, or attribute=");
    return map_attribute(rt, items, args);
  }
  if (!args.positional[0].is_string()) return invalid("the name of a filter must be a string");
  const std::string& name = args.positional[0].string();
  const Filter filter = find_filter(name);
  if (!filter) return unsupported("filter '{}' is not supported", name);
  const Args rest = rest_of(args, 1);
  std::vector<Value> out;
  for (const Value& item : items) {
    MINFER_TRY(rt.charge(1));
    MINFER_ASSIGN(Value value, filter(rt, item, rest));
    out.push_back(std::move(value));
  }
  return iterator(std::move(out));
}

Result<Value> choose(Runtime& rt, const Value& input, const Args& args, bool by_attribute, bool wanted) {
  if (!truthy(input)) return iterator({});  // None too
  MINFER_ASSIGN(const auto items, items_of(rt, input));
  const size_t at = by_attribute ? 1 : 0;
  if (args.positional.size() < at) return invalid("needs the name of an attribute");
  Test test = nullptr;
  Args rest;
  if (args.positional.size() > at) {
    if (!args.positional[at].is_string()) return invalid("the name of a test must be a string");
    const std::string& name = args.positional[at].string();
    test = find_test(name);
    if (!test) return unsupported("test '{}' is not supported", name);
    rest = rest_of(args, at + 1);
  }
  std::vector<Value> out;
  for (const Value& item : items) {
    MINFER_TRY(rt.charge(1));
    MINFER_ASSIGN(const Value value, get_path(rt, item, by_attribute ? std::optional(args.positional[0]) : std::nullopt));
    bool holds = false;
    if (test) {
      MINFER_ASSIGN(holds, test(rt, value, rest));
    } else {
      holds = truthy(value);
    }
    if (holds == wanted) out.push_back(item);
  }
  return iterator(std::move(out));
}

Result<Value> select(Runtime& rt, const Value& v, const Args& a) { return choose(rt, v, a, false, true); }
Result<Value> reject(Runtime& rt, const Value& v, const Args& a) { return choose(rt, v, a, false, false); }
Result<Value> select_attr(Runtime& rt, const Value& v, const Args& a) { return choose(rt, v, a, true, true); }
Result<Value> reject_attr(Runtime& rt, const Value& v, const Args& a) { return choose(rt, v, a, true, false); }

// x | attr('name'): the attribute only, never a key.
Result<Value> attr(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "attr", {"name"}, 1));
  MINFER_ASSIGN(const std::string name, string_or(p[0], "", "name"));
  if (input.is_dict() && !find_dict_method(name)) return Value::undefined(text("'dict object' has no attribute '{}'", name));
  return get_attribute(rt, input, name);
}

constexpr FilterEntry kFilters[] = {
    {"map", map}, {"select", select}, {"reject", reject}, {"selectattr", select_attr}, {"rejectattr", reject_attr}, {"attr", attr},
};

}  // namespace

Filter find_selection_filter(std::string_view name) { return find_in(kFilters, name); }

}  // namespace minfer::jinja
