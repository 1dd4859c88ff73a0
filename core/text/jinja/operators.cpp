// Comparison, membership, iteration, indexing and slicing of template values, as Python defines them.
#include "text/jinja/operators.hpp"

#include <algorithm>

#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

std::string_view symbol(CompareOp op) {
  constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<size_t>(op)];
}

namespace {

// -1, 0, 1, or nothing when one is NaN. Exact for 64-bit integers against floats where long double has 64 bits of mantissa.
std::optional<int> order_numbers(const Value& a, const Value& b) {
  const auto ai = a.as_int();
  const auto bi = b.as_int();
  if (ai && bi) return *ai < *bi ? -1 : *ai > *bi;
  const long double x = ai ? static_cast<long double>(*ai) : static_cast<long double>(*a.as_double());
  const long double y = bi ? static_cast<long double>(*bi) : static_cast<long double>(*b.as_double());
  if (x < y) return -1;
  if (x > y) return 1;
  if (x == y) return 0;
  return std::nullopt;
}

Result<bool> equal_lists(Runtime& rt, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    MINFER_ASSIGN(const bool same, equals(rt, a[i], b[i]));
    if (!same) return false;
  }
  return true;
}

}  // namespace

Result<bool> equals(Runtime& rt, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == std::optional<int>(0);
  if (a.is_string() || b.is_string()) return a.is_string() && b.is_string() && a.string() == b.string();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  const DepthGuard guard(rt);
  MINFER_TRY(guard.status());
  MINFER_TRY(rt.charge(1));
  if (a.list() && b.list()) {
    if (a.list() == b.list()) return true;
    return a.list()->kind == b.list()->kind ? equal_lists(rt, a.list()->items, b.list()->items) : Result<bool>(false);
  }
  if (a.is_dict() && b.is_dict()) {
    if (a.dict().size() != b.dict().size()) return false;
    for (const auto& [key, value] : a.dict().entries()) {
      const Value* other = b.dict().find(key);
      if (!other) return false;
      MINFER_ASSIGN(const bool same, equals(rt, value, *other));
      if (!same) return false;
    }
    return true;
  }
  if (a.ns() || b.ns()) return a.ns() == b.ns();
  if (a.loop() || b.loop()) return a.loop() == b.loop();
  return a.callable() && a.callable() == b.callable();
}

bool same_key(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == std::optional<int>(0);
  if (a.is_string() || b.is_string()) return a.is_string() && b.is_string() && a.string() == b.string();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (!a.list() || !b.list()) return a.data() == b.data();
  const auto& x = a.list()->items;
  const auto& y = b.list()->items;
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), same_key);  // keys are tuples of scalars: one level
}

Result<bool> less(Runtime& rt, const Value& a, const Value& b) {
  if (a.is_undefined()) return invalid("{}", a.undefined_message());
  if (b.is_undefined()) return invalid("{}", b.undefined_message());
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == std::optional<int>(-1);
  // Bytes of UTF-8 order as code points do.
  if (a.is_string() && b.is_string()) return a.string() < b.string();
  const List* x = a.list();
  const List* y = b.list();
  if (x && y && x->kind == y->kind && (x->kind == List::Kind::kList || x->kind == List::Kind::kTuple)) {
    const DepthGuard guard(rt);
    MINFER_TRY(guard.status());
    for (size_t i = 0; i < std::min(x->items.size(), y->items.size()); ++i) {
      MINFER_ASSIGN(const bool same, equals(rt, x->items[i], y->items[i]));
      if (!same) return less(rt, x->items[i], y->items[i]);
    }
    return x->items.size() < y->items.size();
  }
  return invalid("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
}

Result<bool> contains(Runtime& rt, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) return invalid("'in <string>' requires string as left operand, not {}", type_name(item));
    return container.string().find(item.string()) != std::string::npos;
  }
  if (container.is_dict()) {
    if (!hashable(item)) return invalid("unhashable type: '{}'", type_name(item));
    return container.dict().find(item) != nullptr;
  }
  if (container.is_undefined()) return false;
  List* list = container.list();
  if (!list) return invalid("argument of type '{}' is not iterable", type_name(container));
  MINFER_TRY(rt.charge(list->items.size()));
  bool found = false;
  size_t at = 0;
  while (!found && at < list->items.size()) {
    MINFER_ASSIGN(found, equals(rt, list->items[at++], item));
  }
  if (list->kind == List::Kind::kIterator) list->items.erase(list->items.begin(), list->items.begin() + static_cast<std::ptrdiff_t>(at));
  return found;
}

Result<bool> compare(Runtime& rt, CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::kEq: return equals(rt, a, b);
    case CompareOp::kNe: {
      MINFER_ASSIGN(const bool same, equals(rt, a, b));
      return !same;
    }
    case CompareOp::kIn: return contains(rt, b, a);
    case CompareOp::kNotIn: {
      MINFER_ASSIGN(const bool inside, contains(rt, b, a));
      return !inside;
    }
    default: break;
  }
  if (a.is_number() && b.is_number()) {
    const auto order = order_numbers(a, b);
    if (!order) return false;
    if (op == CompareOp::kLt) return *order < 0;
    if (op == CompareOp::kLe) return *order <= 0;
    return op == CompareOp::kGt ? *order > 0 : *order >= 0;
  }
  const bool swap = op == CompareOp::kGt || op == CompareOp::kLe;  // a > b is b < a; a <= b is not b < a
  auto result = swap ? less(rt, b, a) : less(rt, a, b);
  if (!result.ok()) {
    if (a.is_undefined() || b.is_undefined()) return result;
    return invalid("'{}' not supported between instances of '{}' and '{}'", symbol(op), type_name(a), type_name(b));
  }
  const bool inverse = op == CompareOp::kLe || op == CompareOp::kGe;
  return inverse ? !*result : *result;
}

Result<std::vector<Value>> items_of(Runtime& rt, const Value& value) {
  std::vector<Value> out;
  if (value.is_undefined()) return out;
  if (List* list = value.list()) {
    MINFER_TRY(rt.charge(list->items.size()));
    if (list->kind == List::Kind::kIterator) return std::exchange(list->items, {});
    return list->items;
  }
  if (value.is_dict()) {
    MINFER_TRY(rt.charge(value.dict().size()));
    return value.dict().keys();
  }
  if (value.is_string()) {
    MINFER_TRY(rt.charge(value.string().size()));
    for (const char32_t c : code_points(value.string())) {
      std::string one;
      append_utf8(one, c);
      out.emplace_back(std::move(one));
    }
    return out;
  }
  return invalid("'{}' object is not iterable", type_name(value));
}

Result<int64_t> length_of(const Value& value) {
  if (value.is_undefined()) return int64_t{0};
  if (value.is_string()) return static_cast<int64_t>(char_count(value.string()));
  if (const List* list = value.list(); list && list->kind != List::Kind::kIterator) return static_cast<int64_t>(list->items.size());
  if (value.is_dict()) return static_cast<int64_t>(value.dict().size());
  if (const Loop* loop = value.loop()) return static_cast<int64_t>(loop->items.size());
  return invalid("object of type '{}' has no len()", type_name(value));
}

namespace {

bool indexable(const List& list) {
  return list.kind == List::Kind::kList || list.kind == List::Kind::kTuple || list.kind == List::Kind::kRange;
}

// The index of a sequence of `size` items that `index` means, negative from the end.
std::optional<size_t> place(int64_t index, size_t size) {
  const auto n = static_cast<int64_t>(size);
  if (index < -n || index >= n) return std::nullopt;
  return static_cast<size_t>(index < 0 ? index + n : index);
}

}  // namespace

Result<std::optional<Value>> subscript(const Value& object, const Value& key) {
  if (object.is_undefined()) return invalid("{}", object.undefined_message());
  const std::optional<Value> absent;
  if (object.is_dict()) {
    if (!hashable(key)) return absent;
    const Value* found = object.dict().find(key);
    return found ? std::optional<Value>(*found) : absent;
  }
  const auto index = key.as_int();
  if (!index) return absent;
  if (const List* list = object.list(); list && indexable(*list)) {
    const auto i = place(*index, list->items.size());
    return i ? std::optional<Value>(list->items[*i]) : absent;
  }
  if (object.is_string()) {
    const std::string& s = object.string();
    if (is_ascii(s)) {
      const auto i = place(*index, s.size());
      return i ? std::optional<Value>(object.like(std::string(1, s[*i]))) : absent;
    }
    const std::u32string chars = code_points(s);
    const auto i = place(*index, chars.size());
    return i ? std::optional<Value>(object.like(to_utf8(chars.substr(*i, 1)))) : absent;
  }
  return absent;
}

Result<Value> slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) return invalid("{}", object.undefined_message());
  const List* list = object.list();
  if (!object.is_string() && !(list && indexable(*list))) {
    return invalid("'{}' object cannot be sliced", type_name(object));
  }
  for (const Value* part : {&start, &stop, &step}) {
    if (!part->is_none() && !part->as_int()) return invalid("slice indices must be integers or None");
  }
  const int64_t by = step.is_none() ? 1 : *step.as_int();
  if (by == 0) return invalid("slice step cannot be zero");
  const std::u32string chars = object.is_string() ? code_points(object.string()) : std::u32string();
  const auto size = static_cast<int64_t>(list ? list->items.size() : chars.size());
  const int64_t lowest = by > 0 ? 0 : -1;
  const int64_t highest = by > 0 ? size : size - 1;
  const auto bound = [&](const Value& v, int64_t fallback) {
    if (v.is_none()) return fallback;
    const int64_t i = *v.as_int();
    if (i < 0) return i < -size ? lowest : std::max(lowest, i + size);
    return std::min(i, highest);
  };
  const int64_t from = bound(start, by > 0 ? 0 : size - 1);
  const int64_t to = bound(stop, by > 0 ? size : -1);
  MINFER_TRY(rt.charge(static_cast<uint64_t>(size) / 16));
  std::u32string text_out;
  std::vector<Value> list_out;
  for (int64_t i = from; by > 0 ? i < to : i > to;) {
    if (list) {
      list_out.push_back(list->items[static_cast<size_t>(i)]);
    } else {
      text_out += chars[static_cast<size_t>(i)];
    }
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (!list) return object.like(to_utf8(text_out));
  return make_view(std::move(list_out), list->kind == List::Kind::kTuple ? List::Kind::kTuple : List::Kind::kList);
}

}  // namespace minfer::jinja
