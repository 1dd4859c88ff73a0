// Spending of the limits and binding of arguments.
#include "text/jinja/runtime.hpp"

namespace minfer::jinja {

Runtime::~Runtime() {
  for (const Value& value : kept_) {
    if (value.list()) value.list()->items.clear();
    if (value.is_dict()) value.dict().clear();
    if (value.ns()) value.ns()->attributes.clear();
  }
}

Status Runtime::charge(uint64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.max_steps) return invalid("the template takes more than {} steps (limit max_steps)", limits_.max_steps);
  return {};
}

Status Runtime::charge_bytes(uint64_t bytes) {
  if (bytes > limits_.max_output_bytes) {
    return invalid("a text grows beyond {} bytes (limit max_output_bytes)", limits_.max_output_bytes);
  }
  return charge(bytes / 64);
}

void Runtime::keep(const Value& container) {
  if (List* list = container.list()) {
    if (std::exchange(list->kept, true)) return;
  } else if (container.is_dict()) {
    if (std::exchange(container.dict().kept, true)) return;
  }
  kept_.push_back(container);
}

Status DepthGuard::status() const {
  if (rt_.depth_ > rt_.limits_.max_depth) return invalid("nested deeper than {} levels (limit max_depth)", rt_.limits_.max_depth);
  return {};
}

Result<Bound> bind(const Args& args, std::string_view function, std::initializer_list<std::string_view> names, size_t required) {
  Bound bound(names.size());
  if (args.positional.size() > names.size()) {
    return invalid("{}() takes at most {} arguments, {} given", function, names.size(), args.positional.size());
  }
  for (size_t i = 0; i < args.positional.size(); ++i) bound[i] = args.positional[i];
  for (const auto& [name, value] : args.keyword) {
    size_t i = 0;
    while (i < names.size() && names.begin()[i] != name) ++i;
    if (i == names.size()) return invalid("{}() has no argument '{}'", function, name);
    if (bound[i]) return invalid("{}() is given argument '{}' twice", function, name);
    bound[i] = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!bound[i]) return invalid("{}() needs argument '{}'", function, names.begin()[i]);
  }
  return bound;
}

Result<int64_t> int_or(const std::optional<Value>& value, int64_t fallback, std::string_view what) {
  if (!value) return fallback;
  if (const auto i = value->as_int()) return *i;
  return invalid("{} must be an integer, not {}", what, type_name(*value));
}

Result<std::string> string_or(const std::optional<Value>& value, std::string_view fallback, std::string_view what) {
  if (!value) return std::string(fallback);
  if (value->is_string()) return value->string();
  return invalid("{} must be a string, not {}", what, type_name(*value));
}

bool bool_or(const std::optional<Value>& value, bool fallback) { return value ? truthy(*value) : fallback; }

}  // namespace minfer::jinja
