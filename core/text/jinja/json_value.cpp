// From JSON to template values.
#include "text/jinja/json_value.hpp"

#include <nlohmann/json.hpp>

namespace minfer::jinja {

namespace {

constexpr int kMaxDepth = 200;

Result<Value> convert(const nlohmann::ordered_json& json, int depth) {
  if (depth > kMaxDepth) return invalid("JSON nested deeper than {} levels", kMaxDepth);
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::null: return Value();
    case Type::boolean: return Value(json.get<bool>());
    case Type::number_integer: return Value(json.get<int64_t>());
    case Type::number_unsigned: {
      const auto n = json.get<uint64_t>();
      if (n > static_cast<uint64_t>(INT64_MAX)) return invalid("JSON integer {} does not fit 64 bits with sign", n);
      return Value(static_cast<int64_t>(n));
    }
    case Type::number_float: return Value(json.get<double>());
    case Type::string: return Value(json.get_ref<const std::string&>());
    case Type::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) {
        MINFER_ASSIGN(Value value, convert(item, depth + 1));
        items.push_back(std::move(value));
      }
      return make_list(std::move(items));
    }
    case Type::object: {
      auto dict = std::make_shared<Dict>();
      for (auto it = json.begin(); it != json.end(); ++it) {
        MINFER_ASSIGN(Value value, convert(it.value(), depth + 1));
        dict->set(Value(it.key()), std::move(value));
      }
      return Value(std::move(dict));
    }
    default: return invalid("JSON value of type {} has no place in a template", json.type_name());
  }
}

// Whether brackets nest deeper than the limit, found without recursion (the JSON library's own destructor recurses).
bool too_deep(std::string_view s) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < s.size(); ++i) {
    if (in_string) {
      if (s[i] == '\\')
        ++i;
      else if (s[i] == '"')
        in_string = false;
    } else if (s[i] == '"') {
      in_string = true;
    } else if (s[i] == '[' || s[i] == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (s[i] == ']' || s[i] == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<Value> from_json(const nlohmann::ordered_json& json) { return convert(json, 0); }

Result<Value> parse_json(std::string_view text) {
  if (too_deep(text)) return invalid("JSON nested deeper than {} levels", kMaxDepth);
  try {
    return convert(nlohmann::ordered_json::parse(text), 0);
  } catch (const nlohmann::json::exception& e) {
    return invalid("not valid JSON: {}", e.what());
  }
}

}  // namespace minfer::jinja
