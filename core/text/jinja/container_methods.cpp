// The methods of Python's list, tuple and dict that templates call. Those that change their object are allowed, as in Jinja's
// SandboxedEnvironment (the immutable sandbox refuses them; templates in the wild use append).
#include <algorithm>

#include "text/jinja/attributes.hpp"
#include "text/jinja/operators.hpp"

namespace minfer::jinja {

namespace {

Result<Value> list_append(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "append", {"object"}, 1));
  MINFER_TRY(rt.charge(1));
  rt.keep(self);
  self.list()->items.push_back(*p[0]);
  return Value();
}

Result<Value> list_extend(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "extend", {"iterable"}, 1));
  MINFER_ASSIGN(const auto items, items_of(rt, *p[0]));
  rt.keep(self);
  self.list()->items.insert(self.list()->items.end(), items.begin(), items.end());
  return Value();
}

Result<Value> list_insert(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "insert", {"index", "object"}, 2));
  MINFER_ASSIGN(int64_t at, int_or(p[0], 0, "index"));
  auto& items = self.list()->items;
  const auto size = static_cast<int64_t>(items.size());
  MINFER_TRY(rt.charge(items.size() / 16 + 1));
  if (at < 0) at = at < -size ? 0 : at + size;
  rt.keep(self);
  items.insert(items.begin() + std::min(at, size), *p[1]);
  return Value();
}

Result<Value> list_pop(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "pop", {"index"}));
  MINFER_ASSIGN(int64_t at, int_or(p[0], -1, "index"));
  auto& items = self.list()->items;
  const auto size = static_cast<int64_t>(items.size());
  if (size == 0) return invalid("pop from empty list");
  if (at < -size || at >= size) return invalid("pop index out of range");
  if (at < 0) at += size;
  MINFER_TRY(rt.charge(items.size() / 16 + 1));
  const Value out = items[static_cast<size_t>(at)];
  items.erase(items.begin() + at);
  return out;
}

Result<Value> list_clear(Runtime&, const Value& self, const Args&) {
  self.list()->items.clear();
  return Value();
}

Result<Value> list_reverse(Runtime& rt, const Value& self, const Args&) {
  MINFER_TRY(rt.charge(self.list()->items.size()));
  std::reverse(self.list()->items.begin(), self.list()->items.end());
  return Value();
}

Result<std::optional<size_t>> position(Runtime& rt, const List& list, const Value& item) {
  MINFER_TRY(rt.charge(list.items.size()));
  for (size_t i = 0; i < list.items.size(); ++i) {
    MINFER_ASSIGN(const bool same, equals(rt, list.items[i], item));
    if (same) return std::optional<size_t>(i);
  }
  return std::optional<size_t>();
}

Result<Value> list_remove(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "remove", {"value"}, 1));
  MINFER_ASSIGN(const auto at, position(rt, *self.list(), *p[0]));
  if (!at) return invalid("list.remove(x): x not in list");
  self.list()->items.erase(self.list()->items.begin() + static_cast<std::ptrdiff_t>(*at));
  return Value();
}

Result<Value> list_index(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "index", {"value"}, 1));
  MINFER_ASSIGN(const auto at, position(rt, *self.list(), *p[0]));
  if (!at) return invalid("value is not in list");
  return Value(static_cast<int64_t>(*at));
}

Result<Value> list_count(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "count", {"value"}, 1));
  MINFER_TRY(rt.charge(self.list()->items.size()));
  int64_t n = 0;
  for (size_t i = 0; i < self.list()->items.size(); ++i) {
    MINFER_ASSIGN(const bool same, equals(rt, self.list()->items[i], *p[0]));
    n += same;
  }
  return Value(n);
}

Result<Value> list_copy(Runtime& rt, const Value& self, const Args&) {
  MINFER_ASSIGN(auto items, items_of(rt, self));
  return make_list(std::move(items));
}

Result<Value> dict_get(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "get", {"key", "default"}, 1));
  MINFER_TRY(rt.charge(1));
  if (!hashable(*p[0])) return invalid("unhashable type: '{}'", type_name(*p[0]));
  const Value* found = self.dict().find(*p[0]);
  return found ? *found : p[1].value_or(Value());
}

Result<Value> dict_keys(Runtime& rt, const Value& self, const Args&) {
  MINFER_ASSIGN(auto keys, items_of(rt, self));
  return make_view(std::move(keys), List::Kind::kKeys);
}

Result<Value> dict_values(Runtime& rt, const Value& self, const Args&) {
  MINFER_TRY(rt.charge(self.dict().size()));
  std::vector<Value> out;
  for (const auto& entry : self.dict().entries()) out.push_back(entry.second);
  return make_view(std::move(out), List::Kind::kValues);
}

Result<Value> dict_items(Runtime& rt, const Value& self, const Args&) {
  MINFER_TRY(rt.charge(self.dict().size()));
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().entries()) out.push_back(make_tuple({key, value}));
  return make_view(std::move(out), List::Kind::kItems);
}

Result<Value> dict_pop(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "pop", {"key", "default"}, 1));
  MINFER_TRY(rt.charge(self.dict().size() / 16 + 1));
  const Value* found = hashable(*p[0]) ? self.dict().find(*p[0]) : nullptr;
  if (!found) return p[1] ? Result<Value>(*p[1]) : invalid("pop(): no such key");
  const Value out = *found;
  self.dict().erase(*p[0]);
  return out;
}

Result<Value> dict_set_default(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "setdefault", {"key", "default"}, 1));
  if (!hashable(*p[0])) return invalid("unhashable type: '{}'", type_name(*p[0]));
  if (const Value* found = self.dict().find(*p[0])) return *found;
  rt.keep(self);
  self.dict().set(*p[0], p[1].value_or(Value()));
  return p[1].value_or(Value());
}

Result<Value> dict_update(Runtime& rt, const Value& self, const Args& args) {
  if (args.positional.size() > 1) return invalid("update() takes at most 1 positional argument");
  rt.keep(self);
  if (!args.positional.empty()) {
    if (!args.positional[0].is_dict()) return invalid("update() needs a dict, not {}", type_name(args.positional[0]));
    MINFER_TRY(rt.charge(args.positional[0].dict().size()));
    const auto entries = args.positional[0].dict().entries();  // a copy: a dict may update itself
    for (const auto& [key, value] : entries) self.dict().set(key, value);
  }
  for (const auto& [key, value] : args.keyword) self.dict().set(key, value);
  return Value();
}

Result<Value> dict_clear(Runtime&, const Value& self, const Args&) {
  self.dict().clear();
  return Value();
}

Result<Value> dict_copy(Runtime& rt, const Value& self, const Args&) {
  MINFER_TRY(rt.charge(self.dict().size()));
  auto copy = std::make_shared<Dict>();
  for (const auto& [key, value] : self.dict().entries()) copy->set(key, value);
  return Value(std::move(copy));
}

Result<Value> not_supported(Runtime&, const Value& self, const Args&) {
  return unsupported("this method of {} is not supported", type_name(self));
}

struct Entry {
  std::string_view name;
  Method method;
};

constexpr Entry kListMethods[] = {
    {"append", list_append}, {"extend", list_extend}, {"insert", list_insert},   {"pop", list_pop},
    {"clear", list_clear},   {"remove", list_remove}, {"reverse", list_reverse}, {"index", list_index},
    {"count", list_count},   {"copy", list_copy},     {"sort", not_supported},
};

constexpr Entry kDictMethods[] = {
    {"get", dict_get},
    {"items", dict_items},
    {"keys", dict_keys},
    {"values", dict_values},
    {"pop", dict_pop},
    {"update", dict_update},
    {"setdefault", dict_set_default},
    {"clear", dict_clear},
    {"copy", dict_copy},
    {"popitem", not_supported},
    {"fromkeys", not_supported},
};

template <size_t kSize>
Method find(const Entry (&methods)[kSize], std::string_view name) {
  for (const Entry& entry : methods) {
    if (entry.name == name) return entry.method;
  }
  return nullptr;
}

}  // namespace

Method find_list_method(std::string_view name) { return find(kListMethods, name); }
Method find_dict_method(std::string_view name) { return find(kDictMethods, name); }

}  // namespace minfer::jinja
