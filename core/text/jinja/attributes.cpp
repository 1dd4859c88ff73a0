// x.name and x[key] as Jinja's sandbox resolves them.
#include "text/jinja/attributes.hpp"

#include <algorithm>

#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"

namespace minfer::jinja {

namespace {

// What a str method made of a marked text is marked too, and so are the parts that it was split into.
Value marked(const Value& value) {
  if (value.is_string()) return Value::markup(value.string());
  if (List* list = value.list()) {
    for (Value& item : list->items) item = marked(item);
  }
  return value;
}

Value bound(const Value& self, std::string_view name, Method method) {
  const auto call = [self, method](Runtime& rt, const Args& args) -> Result<Value> {
    MINFER_ASSIGN(const Value out, method(rt, self, args));
    return self.is_markup() ? marked(out) : out;
  };
  return std::make_shared<Callable>(Callable{std::string(name), call});
}

Result<Value> cycle(const Loop& loop, const Args& args) {
  if (args.positional.empty()) return invalid("no items for cycling given");
  return args.positional[loop.index0 % args.positional.size()];
}

Result<Value> changed(Runtime& rt, Loop& loop, const Args& args) {
  bool same = loop.last_changed && loop.last_changed->size() == args.positional.size();
  for (size_t i = 0; same && i < args.positional.size(); ++i) {
    MINFER_ASSIGN(same, equals(rt, (*loop.last_changed)[i], args.positional[i]));
  }
  if (!same) loop.last_changed = args.positional;
  return Value(!same);
}

std::optional<Value> loop_attribute(const Value& self, std::string_view name) {
  Loop& loop = *self.loop();
  const auto size = static_cast<int64_t>(loop.items.size());
  const auto index0 = static_cast<int64_t>(loop.index0);
  if (name == "index") return Value(index0 + 1);
  if (name == "index0") return Value(index0);
  if (name == "revindex") return Value(size - index0);
  if (name == "revindex0") return Value(size - index0 - 1);
  if (name == "first") return Value(index0 == 0);
  if (name == "last") return Value(index0 + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(static_cast<int64_t>(loop.depth0) + 1);
  if (name == "depth0") return Value(static_cast<int64_t>(loop.depth0));
  if (name == "previtem") return index0 > 0 ? loop.items[loop.index0 - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem") return index0 + 1 < size ? loop.items[loop.index0 + 1] : Value::undefined("there is no next item");
  if (name == "cycle") return bound(self, name, [](Runtime&, const Value& v, const Args& a) { return cycle(*v.loop(), a); });
  if (name == "changed") return bound(self, name, [](Runtime& rt, const Value& v, const Args& a) { return changed(rt, *v.loop(), a); });
  return std::nullopt;
}

std::optional<Value> attribute(const Value& object, std::string_view name) {
  if (object.is_string()) {
    if (const Method m = find_string_method(name)) return bound(object, name, m);
  } else if (object.is_dict()) {
    if (const Method m = find_dict_method(name)) return bound(object, name, m);
  } else if (const List* list = object.list()) {
    const bool changes = list->kind == List::Kind::kList || name == "index" || name == "count";
    if (const Method m = changes && list->kind <= List::Kind::kTuple ? find_list_method(name) : nullptr) return bound(object, name, m);
  } else if (object.loop()) {
    return loop_attribute(object, name);
  } else if (const Namespace* ns = object.ns()) {
    if (const Value* found = ns->find(name)) return *found;
  } else if (const Callable* callable = object.callable()) {
    if (name == "name") return Value(callable->name);
  }
  return std::nullopt;
}

}  // namespace

Result<Value> get_attribute(Runtime& rt, const Value& object, std::string_view name) {
  MINFER_TRY(rt.charge(1));
  if (object.is_undefined()) return invalid("{}", object.undefined_message());
  if (auto found = attribute(object, name)) return *found;
  if (object.is_dict()) {
    if (const Value* found = object.dict().find(name)) return *found;
  }
  return Value::undefined(text("'{} object' has no attribute '{}'", type_name(object), name));
}

Result<Value> get_item(Runtime& rt, const Value& object, const Value& key) {
  MINFER_TRY(rt.charge(1));
  MINFER_ASSIGN(auto found, subscript(object, key));
  if (found) return *std::move(found);
  if (!key.is_string()) {
    MINFER_ASSIGN(const std::string shown, repr(rt, key));
    return Value::undefined(text("{} object has no element {}", type_name(object), shown));
  }
  if (auto value = attribute(object, key.string())) return *value;
  return Value::undefined(text("'{} object' has no attribute '{}'", type_name(object), key.string()));
}

}  // namespace minfer::jinja
