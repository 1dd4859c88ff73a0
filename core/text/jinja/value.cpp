// Construction, truth, dict lookup and safe destruction of template values.
#include "text/jinja/value.hpp"

#include "text/jinja/operators.hpp"

namespace minfer::jinja {

namespace {

constexpr size_t kIndexFrom = 16;  // dicts smaller than this are searched in order
constexpr int kMaxDestructorDepth = 64;

// Destroys values without recursing once per level: a template can nest lists deeper than any stack.
void release(std::vector<Value>&& values) {
  thread_local int depth = 0;
  thread_local std::vector<std::vector<Value>> pending;
  if (depth >= kMaxDestructorDepth) {
    pending.push_back(std::move(values));
    return;
  }
  ++depth;
  values.clear();
  --depth;
  if (depth > 0) return;
  while (!pending.empty()) {
    std::vector<Value> next = std::move(pending.back());
    pending.pop_back();
    ++depth;
    next.clear();
    --depth;
  }
}

}  // namespace

Value Value::undefined(std::string message) {
  Value v;
  v.data_ = Undefined{std::make_shared<const std::string>(std::move(message))};
  return v;
}

Value Value::markup(std::string s) {
  Value v;
  v.data_ = std::make_shared<const Text>(Text{std::move(s), true});
  return v;
}

std::optional<int64_t> Value::as_int() const {
  if (const auto* i = std::get_if<int64_t>(&data_)) return *i;
  if (const auto* b = std::get_if<bool>(&data_)) return *b ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::as_double() const {
  if (const auto* d = std::get_if<double>(&data_)) return *d;
  if (const auto i = as_int()) return static_cast<double>(*i);
  return std::nullopt;
}

List::~List() { release(std::move(items)); }

Value make_list(std::vector<Value> items) { return std::make_shared<List>(std::move(items)); }
Value make_tuple(std::vector<Value> items) { return std::make_shared<List>(std::move(items), List::Kind::kTuple); }
Value make_view(std::vector<Value> items, List::Kind kind) { return std::make_shared<List>(std::move(items), kind); }

Dict::~Dict() { clear(); }

void Dict::clear() {
  index_.clear();
  std::vector<Value> values;
  values.reserve(entries_.size());
  for (auto& [key, value] : entries_) values.push_back(std::move(value));
  for (auto& [key, value] : entries_) values.push_back(std::move(key));
  entries_.clear();
  release(std::move(values));
}

std::optional<size_t> Dict::position(std::string_view key) const {
  if (!index_.empty()) {
    const auto it = index_.find(key);
    return it == index_.end() ? std::nullopt : std::optional(it->second);
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].first.is_string() && entries_[i].first.string() == key) return i;
  }
  return std::nullopt;
}

std::optional<size_t> Dict::position(const Value& key) const {
  if (key.is_string()) return position(std::string_view(key.string()));
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (same_key(entries_[i].first, key)) return i;
  }
  return std::nullopt;
}

const Value* Dict::find(std::string_view key) const {
  const auto i = position(key);
  return i ? &entries_[*i].second : nullptr;
}

const Value* Dict::find(const Value& key) const {
  const auto i = position(key);
  return i ? &entries_[*i].second : nullptr;
}

void Dict::index_all() {
  index_.clear();
  if (entries_.size() < kIndexFrom) return;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].first.is_string()) index_.emplace(entries_[i].first.string(), i);
  }
}

void Dict::set(const Value& key, Value value) {
  if (const auto i = position(key)) {
    entries_[*i].second = std::move(value);
    return;
  }
  entries_.emplace_back(key, std::move(value));
  if (index_.empty()) {
    index_all();
  } else if (key.is_string()) {
    index_.emplace(key.string(), entries_.size() - 1);
  }
}

bool Dict::erase(const Value& key) {
  const auto i = position(key);
  if (!i) return false;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(*i));
  index_all();
  return true;
}

std::vector<Value> Dict::keys() const {
  std::vector<Value> out;
  out.reserve(entries_.size());
  for (const auto& entry : entries_) out.push_back(entry.first);
  return out;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(std::string(name), std::move(value));
}

std::string_view type_name(const Value& value) {
  if (const List* list = value.list()) {
    switch (list->kind) {
      case List::Kind::kList: return "list";
      case List::Kind::kTuple: return "tuple";
      case List::Kind::kKeys: return "dict_keys";
      case List::Kind::kValues: return "dict_values";
      case List::Kind::kItems: return "dict_items";
      case List::Kind::kRange: return "range";
      case List::Kind::kIterator: return "generator";
    }
  }
  if (value.is_none()) return "NoneType";
  if (value.is_undefined()) return "Undefined";
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "int";
  if (value.is_float()) return "float";
  if (value.is_markup()) return "Markup";
  if (value.is_string()) return "str";
  if (value.is_dict()) return "dict";
  if (value.ns()) return "Namespace";
  if (value.loop()) return "LoopContext";
  return "function";
}

bool truthy(const Value& value) {
  if (value.is_none() || value.is_undefined()) return false;
  if (const auto i = value.as_int()) return *i != 0;
  if (value.is_float()) return *value.as_double() != 0;
  if (value.is_string()) return !value.string().empty();
  if (const List* list = value.list()) return list->kind == List::Kind::kIterator || !list->items.empty();
  if (value.is_dict()) return value.dict().size() > 0;
  return true;
}

bool hashable(const Value& value) {
  const List* list = value.list();
  if (!list) return !value.is_dict();
  if (list->kind != List::Kind::kTuple) return list->kind == List::Kind::kRange;
  for (const Value& item : list->items) {
    const List* inner = item.list();  // tuples of tuples as keys: not worth the recursion
    if (item.is_dict() || (inner != nullptr)) return false;
  }
  return true;
}

}  // namespace minfer::jinja
