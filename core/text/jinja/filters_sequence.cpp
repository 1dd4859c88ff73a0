// Filters over whole sequences and dicts: length, ends, order, joining, grouping into rows.
#include <algorithm>

#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

namespace {

Value iterator(std::vector<Value> items) { return make_view(std::move(items), List::Kind::kIterator); }
bool is_iterator(const Value& value) { return value.list() && value.list()->kind == List::Kind::kIterator; }

Result<Value> length(Runtime&, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "length", {}));
  MINFER_ASSIGN(const int64_t n, length_of(input));
  return Value(n);
}

Result<Value> first(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "first", {}));
  if (List* list = input.list(); list && list->kind == List::Kind::kIterator && !list->items.empty()) {
    MINFER_TRY(rt.charge(list->items.size() / 16 + 1));
    Value next = std::move(list->items.front());
    list->items.erase(list->items.begin());
    return next;
  }
  MINFER_ASSIGN(const auto items, items_of(rt, input));
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Result<Value> last(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "last", {}));
  if (is_iterator(input)) return invalid("'{}' object is not reversible", type_name(input));
  MINFER_ASSIGN(const auto items, items_of(rt, input));
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Result<Value> to_list(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "list", {}));
  MINFER_ASSIGN(auto items, items_of(rt, input));
  return make_list(std::move(items));
}

Result<Value> reverse(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "reverse", {}));
  if (input.is_string()) return slice(rt, input, Value(), Value(), Value(-1));
  const bool was_iterator = is_iterator(input);  // Python cannot turn one round and makes a list of it
  MINFER_ASSIGN(auto items, items_of(rt, input));
  std::reverse(items.begin(), items.end());
  return was_iterator ? make_list(std::move(items)) : iterator(std::move(items));
}

Result<Value> join(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "join", {"d", "attribute"}));
  MINFER_ASSIGN(const auto items, items_of(rt, input));
  std::string separator;
  if (p[0]) {
    MINFER_ASSIGN(separator, to_str(rt, *p[0]));
  }
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    MINFER_ASSIGN(const Value item, get_path(rt, items[i], p[1]));
    MINFER_ASSIGN(const std::string piece, to_str(rt, item));
    if (i > 0) out += separator;
    out += piece;
    if (out.size() > rt.limits().max_output_bytes) break;
  }
  MINFER_TRY(rt.charge_bytes(out.size()));
  return Value(std::move(out));
}

// Indices of `keys` in ascending (descending) order, equal ones in their first order.
Result<std::vector<size_t>> sorted_order(Runtime& rt, const std::vector<Value>& keys, bool descending) {
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Status failed;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (!failed.ok()) return false;
    if (Status spent = rt.charge(1); !spent.ok()) {
      failed = spent;
      return false;
    }
    const auto smaller = descending ? less(rt, keys[b], keys[a]) : less(rt, keys[a], keys[b]);
    if (!smaller.ok()) failed = smaller.error();
    return smaller.ok() && *smaller;
  });
  if (!failed.ok()) return failed.error();
  return order;
}

Result<Value> sort(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "sort", {"reverse", "case_sensitive", "attribute"}));
  MINFER_ASSIGN(const auto items, items_of(rt, input));
  const bool fold = !bool_or(p[1], false);
  std::vector<std::optional<Value>> paths;  // "a,b": by a, then by b
  if (p[2] && p[2]->is_string()) {
    const std::string& all = p[2]->string();
    for (size_t start = 0; start <= all.size();) {
      const size_t comma = std::min(all.find(',', start), all.size());
      paths.emplace_back(Value(all.substr(start, comma - start)));
      start = comma + 1;
    }
  } else {
    paths.push_back(p[2]);
  }
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const auto& path : paths) {
      MINFER_ASSIGN(const Value part, get_path(rt, item, path));
      key.push_back(fold ? fold_case(part) : part);
    }
    keys.push_back(make_list(std::move(key)));  // a list even of one: equal items need no order, as two None
  }
  MINFER_ASSIGN(const auto order, sorted_order(rt, keys, bool_or(p[0], false)));
  std::vector<Value> out;
  for (const size_t i : order) out.push_back(items[i]);
  return make_list(std::move(out));
}

Result<Value> dict_sort(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "dictsort", {"case_sensitive", "by", "reverse"}));
  if (input.is_undefined()) return invalid("{}", input.undefined_message());
  if (!input.is_dict()) return invalid("needs a dict, not {}", type_name(input));
  MINFER_ASSIGN(const std::string by, string_or(p[1], "key", "by"));
  if (by != "key" && by != "value") return invalid("can only sort by 'key' or 'value'");
  std::vector<Value> keys;
  for (const auto& [key, value] : input.dict().entries()) {
    const Value& chosen = by == "key" ? key : value;
    keys.push_back(bool_or(p[0], false) ? chosen : fold_case(chosen));
  }
  MINFER_ASSIGN(const auto order, sorted_order(rt, keys, bool_or(p[2], false)));
  std::vector<Value> out;
  for (const size_t i : order) out.push_back(make_tuple({input.dict().entries()[i].first, input.dict().entries()[i].second}));
  return make_list(std::move(out));
}

Result<Value> items(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "items", {}));
  std::vector<Value> out;
  if (input.is_undefined()) return iterator(std::move(out));
  if (!input.is_dict()) return invalid("can only get item pairs from a mapping");
  MINFER_TRY(rt.charge(input.dict().size()));
  for (const auto& [key, value] : input.dict().entries()) out.push_back(make_tuple({key, value}));
  return iterator(std::move(out));
}

Result<Value> unique(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "unique", {"case_sensitive", "attribute"}));
  MINFER_ASSIGN(const auto all, items_of(rt, input));
  Dict seen;
  std::vector<Value> out;
  for (const Value& item : all) {
    MINFER_ASSIGN(const Value key, get_path(rt, item, p[1]));
    const Value folded = bool_or(p[0], false) ? key : fold_case(key);
    if (!hashable(folded)) return invalid("unhashable type: '{}'", type_name(folded));
    MINFER_TRY(rt.charge(folded.is_string() ? 1 : seen.size() + 1));
    if (seen.find(folded)) continue;
    seen.set(folded, Value());
    out.push_back(item);
  }
  return iterator(std::move(out));
}

Result<Value> extreme(Runtime& rt, const Value& input, const Args& args, std::string_view name, bool largest) {
  MINFER_ASSIGN(const auto p, bind(args, name, {"case_sensitive", "attribute"}));
  MINFER_ASSIGN(const auto all, items_of(rt, input));
  if (all.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  std::optional<Value> best_key;
  Value best;
  for (const Value& item : all) {
    MINFER_ASSIGN(Value key, get_path(rt, item, p[1]));
    if (!bool_or(p[0], false)) key = fold_case(key);
    bool better = true;
    if (best_key) {
      MINFER_ASSIGN(better, largest ? less(rt, *best_key, key) : less(rt, key, *best_key));
    }
    if (!better) continue;
    best_key = key;
    best = item;
  }
  return best;
}

Result<Value> smallest(Runtime& rt, const Value& v, const Args& args) { return extreme(rt, v, args, "min", false); }
Result<Value> largest(Runtime& rt, const Value& v, const Args& args) { return extreme(rt, v, args, "max", true); }

Result<Value> sum(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "sum", {"attribute", "start"}));
  MINFER_ASSIGN(const auto all, items_of(rt, input));
  Value total = p[1].value_or(Value(0));
  if (total.is_string()) return invalid("can't sum strings [use join instead]");
  for (const Value& item : all) {
    MINFER_ASSIGN(const Value part, get_path(rt, item, p[0]));
    MINFER_ASSIGN(total, binary(rt, BinaryOp::kAdd, total, part));
  }
  return total;
}

Result<Value> batch(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "batch", {"linecount", "fill_with"}, 1));
  MINFER_ASSIGN(const auto all, items_of(rt, input));
  MINFER_ASSIGN(const int64_t count, int_or(p[0], 1, "linecount"));
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : all) {
    if (static_cast<int64_t>(row.size()) == count) {
      rows.push_back(make_list(std::move(row)));
      row = {};
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    const bool fill = p[1] && !p[1]->is_none() && static_cast<int64_t>(row.size()) < count;
    if (fill) {
      MINFER_TRY(rt.charge(static_cast<uint64_t>(count)));
      row.resize(static_cast<size_t>(count), *p[1]);
    }
    rows.push_back(make_list(std::move(row)));
  }
  return iterator(std::move(rows));
}

Result<Value> slice_filter(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "slice", {"slices", "fill_with"}, 1));
  MINFER_ASSIGN(const auto all, items_of(rt, input));
  MINFER_ASSIGN(const int64_t count, int_or(p[0], 1, "slices"));
  if (count == 0) return invalid("integer division or modulo by zero");
  std::vector<Value> out;
  if (count < 0) return iterator(std::move(out));
  MINFER_TRY(rt.charge(static_cast<uint64_t>(count)));
  const size_t each = all.size() / static_cast<size_t>(count);
  const size_t with_extra = all.size() % static_cast<size_t>(count);
  size_t start = 0;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const size_t size = each + (i < with_extra ? 1 : 0);
    std::vector<Value> part(all.begin() + static_cast<std::ptrdiff_t>(start), all.begin() + static_cast<std::ptrdiff_t>(start + size));
    if (p[1] && !p[1]->is_none() && i >= with_extra) part.push_back(*p[1]);
    out.push_back(make_list(std::move(part)));
    start += size;
  }
  return iterator(std::move(out));
}

// Sorted by the attribute, one (value, items) pair per distinct value.
Result<Value> group_by(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "groupby", {"attribute", "default", "case_sensitive"}, 1));
  MINFER_ASSIGN(const auto all, items_of(rt, input));
  std::vector<Value> names;
  std::vector<Value> keys;
  for (const Value& item : all) {
    MINFER_ASSIGN(Value name, get_path(rt, item, p[0]));
    if (name.is_undefined() && p[1] && !p[1]->is_none()) name = *p[1];
    keys.push_back(bool_or(p[2], false) ? name : fold_case(name));
    names.push_back(std::move(name));
  }
  MINFER_ASSIGN(const auto order, sorted_order(rt, keys, false));
  std::vector<Value> groups;
  for (size_t i = 0; i < order.size();) {
    std::vector<Value> members;
    size_t end = i;
    while (end < order.size()) {
      MINFER_ASSIGN(const bool same, equals(rt, keys[order[i]], keys[order[end]]));
      if (!same) break;
      members.push_back(all[order[end++]]);
    }
    groups.push_back(make_tuple({names[order[i]], make_list(std::move(members))}));
    i = end;
  }
  return make_list(std::move(groups));
}

constexpr FilterEntry kFilters[] = {
    {"length", length}, {"count", length}, {"first", first},        {"last", last},          {"list", to_list},     {"reverse", reverse},
    {"join", join},     {"sort", sort},    {"dictsort", dict_sort}, {"items", items},        {"unique", unique},    {"min", smallest},
    {"max", largest},   {"sum", sum},      {"batch", batch},        {"slice", slice_filter}, {"groupby", group_by},
};

}  // namespace

Filter find_sequence_filter(std::string_view name) { return find_in(kFilters, name); }

}  // namespace minfer::jinja
