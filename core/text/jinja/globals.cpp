// The functions every template can call.
#include <algorithm>

#include "text/jinja/interpreter.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/strftime.hpp"

namespace minfer::jinja {

namespace {

Result<Value> range(Runtime& rt, const Args& args) {
  if (!args.keyword.empty()) return invalid("range() takes no keyword arguments");
  if (args.positional.empty() || args.positional.size() > 3) return invalid("range() takes 1 to 3 arguments");
  int64_t n[3] = {0, 0, 1};
  for (size_t i = 0; i < args.positional.size(); ++i) {
    if (args.positional[i].is_undefined()) return invalid("{}", args.positional[i].undefined_message());
    const auto value = args.positional[i].as_int();
    if (!value) return invalid("'{}' object cannot be interpreted as an integer", type_name(args.positional[i]));
    n[i] = *value;
  }
  if (args.positional.size() == 1) std::swap(n[0], n[1]);
  if (n[2] == 0) return invalid("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t i = n[0]; n[2] > 0 ? i < n[1] : i > n[1];) {
    if (items.size() >= rt.limits().max_range) return invalid("range() is longer than {} items (limit max_range)", rt.limits().max_range);
    items.emplace_back(i);
    if (__builtin_add_overflow(i, n[2], &i)) break;
  }
  MINFER_TRY(rt.charge(items.size()));
  auto list = std::make_shared<List>(std::move(items), List::Kind::kRange);
  list->label = n[2] == 1 ? text("range({}, {})", n[0], n[1]) : text("range({}, {}, {})", n[0], n[1], n[2]);
  return Value(std::move(list));
}

// Entries of dict(...) and namespace(...): one mapping or list of pairs, then keywords.
Result<std::shared_ptr<Dict>> entries(Runtime& rt, const Args& args, std::string_view function) {
  if (args.positional.size() > 1) return invalid("{}() takes at most 1 positional argument", function);
  auto dict = std::make_shared<Dict>();
  if (!args.positional.empty() && args.positional[0].is_dict()) {
    MINFER_TRY(rt.charge(args.positional[0].dict().size()));
    for (const auto& [key, value] : args.positional[0].dict().entries()) dict->set(key, value);
  } else if (!args.positional.empty()) {
    MINFER_ASSIGN(const auto pairs, items_of(rt, args.positional[0]));
    for (const Value& pair : pairs) {
      MINFER_ASSIGN(const auto two, items_of(rt, pair));
      if (two.size() != 2) return invalid("{}() needs pairs, found {} values", function, two.size());
      if (!hashable(two[0])) return invalid("unhashable type: '{}'", type_name(two[0]));
      dict->set(two[0], two[1]);
    }
  }
  for (const auto& [name, value] : args.keyword) dict->set(Value(name), value);
  return dict;
}

Result<Value> dict(Runtime& rt, const Args& args) {
  MINFER_ASSIGN(auto out, entries(rt, args, "dict"));
  return Value(std::move(out));
}

Result<Value> make_namespace(Runtime& rt, const Args& args) {
  MINFER_ASSIGN(const auto from, entries(rt, args, "namespace"));
  auto ns = std::make_shared<Namespace>();
  for (const auto& [key, value] : from->entries()) {
    if (key.is_string()) ns->set(key.string(), value);
  }
  Value out(std::move(ns));
  rt.keep(out);
  return out;
}

Result<Value> raise_exception(Runtime& rt, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "raise_exception", {"message"}, 1));
  MINFER_ASSIGN(const std::string message, to_str(rt, *p[0]));
  return invalid("{}", message);
}

Result<Value> strftime_now(Runtime& rt, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "strftime_now", {"format"}, 1));
  MINFER_ASSIGN(const std::string format, string_or(p[0], "", "the format"));
  return Value(format_time(format, rt.now()));
}

Result<Value> joiner(Runtime&, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "joiner", {"sep"}));
  const Value separator = p[0].value_or(Value(", "));
  const auto used = std::make_shared<bool>(false);
  const auto call = [separator, used](Runtime&, const Args&) -> Result<Value> {
    return std::exchange(*used, true) ? separator : Value("");
  };
  return Value(std::make_shared<Callable>(Callable{"joiner", call}));
}

// cycler(a, b): an object with next(), reset() and current.
Result<Value> cycler(Runtime& rt, const Args& args) {
  if (args.positional.empty() || !args.keyword.empty()) return invalid("cycler() needs at least one item");
  const auto items = std::make_shared<const std::vector<Value>>(args.positional);
  auto ns = std::make_shared<Namespace>();
  Namespace* state = ns.get();  // kept to the end of the render, as its own functions are
  ns->set("current", items->front());
  const auto position = std::make_shared<size_t>(0);
  const auto move_to = [items, position, state](size_t to) {
    *position = to % items->size();
    state->set("current", (*items)[*position]);
  };
  const auto next = [items, position, move_to](Runtime&, const Args&) -> Result<Value> {
    const Value out = (*items)[*position];
    move_to(*position + 1);
    return out;
  };
  const auto reset = [move_to](Runtime&, const Args&) -> Result<Value> {
    move_to(0);
    return Value();
  };
  ns->set("next", Value(std::make_shared<Callable>(Callable{"next", next})));
  ns->set("reset", Value(std::make_shared<Callable>(Callable{"reset", reset})));
  Value out(std::move(ns));
  rt.keep(out);
  return out;
}

}  // namespace

void define_globals(Scope& scope) {
  using Function = Result<Value> (*)(Runtime&, const Args&);
  constexpr std::pair<const char*, Function> kFunctions[] = {
      {"range", range},
      {"dict", dict},
      {"namespace", make_namespace},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
      {"joiner", joiner},
      {"cycler", cycler},
  };
  for (const auto& [name, function] : kFunctions) scope.set(name, Value(std::make_shared<Callable>(Callable{name, function})));
}

}  // namespace minfer::jinja
