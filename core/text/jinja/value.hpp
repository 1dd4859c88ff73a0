// The values of a template: Python's None, bool, int (64 bit), float, str, list, tuple, dict, and the engine's own objects.
// A Value is small; strings and containers are shared, as Python shares them. Not thread-safe across renders of one value.
// Knows nothing of JSON, of syntax, or of how a template is run.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"

namespace minfer::jinja {

class Value;
struct List;
struct Dict;
struct Namespace;
struct Callable;
struct Loop;
struct Args;
class Runtime;

struct None {
  friend bool operator==(const None&, const None&) = default;
};
// A name, key or index that does not exist. It prints as nothing and is false; most other uses are errors with this message.
struct Undefined {
  std::shared_ptr<const std::string> message;
  friend bool operator==(const Undefined&, const Undefined&) = default;
};
// UTF-8. Bytes that are not UTF-8 count as one character each and pass through unchanged.
struct Text {
  std::string bytes;
  bool markup = false;  // the result of `safe` or `escape`: adding plain text to it escapes that text
};

class Value {
 public:
  using Data = std::variant<None, Undefined, bool, int64_t, double, std::shared_ptr<const Text>, std::shared_ptr<List>,
                            std::shared_ptr<Dict>, std::shared_ptr<Namespace>, std::shared_ptr<Callable>, std::shared_ptr<Loop>>;

  Value() = default;  // None
  Value(std::same_as<bool> auto b) : data_(b) {}
  Value(std::signed_integral auto i) : data_(static_cast<int64_t>(i)) {}
  Value(double d) : data_(d) {}
  Value(std::string s) : data_(std::make_shared<const Text>(Text{std::move(s), false})) {}
  Value(std::string_view s) : Value(std::string(s)) {}
  Value(const char* s) : Value(std::string(s)) {}
  Value(std::shared_ptr<List> list) : data_(std::move(list)) {}
  Value(std::shared_ptr<Dict> dict) : data_(std::move(dict)) {}
  Value(std::shared_ptr<Namespace> ns) : data_(std::move(ns)) {}
  Value(std::shared_ptr<Callable> callable) : data_(std::move(callable)) {}
  Value(std::shared_ptr<Loop> loop) : data_(std::move(loop)) {}

  static Value undefined(std::string message);
  static Value markup(std::string s);
  // `s` as safe as this text is: what str methods and filters make of a marked text stays marked.
  Value like(std::string s) const { return is_markup() ? markup(std::move(s)) : Value(std::move(s)); }

  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }  // not bool
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_string() const { return std::holds_alternative<std::shared_ptr<const Text>>(data_); }
  bool is_markup() const { return is_string() && std::get<std::shared_ptr<const Text>>(data_)->markup; }
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<Dict>>(data_); }

  // Each may be called only for its own type.
  const std::string& string() const { return std::get<std::shared_ptr<const Text>>(data_)->bytes; }
  const std::string& undefined_message() const { return *std::get<Undefined>(data_).message; }
  Dict& dict() const { return *std::get<std::shared_ptr<Dict>>(data_); }

  // Null when the value is of another type.
  List* list() const { return object<List>(); }  // list, tuple, view, range
  Namespace* ns() const { return object<Namespace>(); }
  Callable* callable() const { return object<Callable>(); }
  Loop* loop() const { return object<Loop>(); }

  std::optional<int64_t> as_int() const;    // int or bool
  std::optional<double> as_double() const;  // int, bool or float

  const Data& data() const { return data_; }

 private:
  template <class T>
  T* object() const {
    const auto* p = std::get_if<std::shared_ptr<T>>(&data_);
    return p ? p->get() : nullptr;
  }

  Data data_;
};

struct List {
  // What Python would call it; views, ranges and iterators cannot be indexed or changed, and print differently.
  enum class Kind : uint8_t { kList, kTuple, kKeys, kValues, kItems, kRange, kIterator };

  List() = default;
  explicit List(std::vector<Value> values, Kind k = Kind::kList) : kind(k), items(std::move(values)) {}
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List();

  Kind kind = Kind::kList;
  bool kept = false;  // already in Runtime::keep
  std::vector<Value> items;
  std::string label;  // how a range prints
};

Value make_list(std::vector<Value> items);
Value make_tuple(std::vector<Value> items);
Value make_view(std::vector<Value> items, List::Kind kind);

// Insertion-ordered, keys as Python's (1, 1.0 and True are one key).
struct Dict {
  Dict() = default;
  Dict(const Dict&) = delete;
  Dict& operator=(const Dict&) = delete;
  ~Dict();

  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;
  void set(const Value& key, Value value);
  bool erase(const Value& key);

  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  std::vector<Value> keys() const;
  size_t size() const { return entries_.size(); }
  void clear();

  bool kept = false;

 private:
  std::optional<size_t> position(const Value& key) const;
  std::optional<size_t> position(std::string_view key) const;
  void index_all();

  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_map<std::string_view, size_t> index_;  // string keys of a large dict; views into the keys themselves
};

// namespace(): the one object whose attributes `set` can change.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

// A macro, a method bound to its object, or a global function.
struct Callable {
  std::string name;
  std::function<Result<Value>(Runtime&, const Args&)> call;
};

// The `loop` variable.
struct Loop {
  std::vector<Value> items;
  size_t index0 = 0;
  size_t depth0 = 0;
  std::optional<std::vector<Value>> last_changed;
  std::function<Result<Value>(Runtime&, const Value&)> recurse;  // only in a loop marked recursive
};

// Python's name of the type, as its error messages write it ("str", "dict", "NoneType").
std::string_view type_name(const Value& value);
bool truthy(const Value& value);
// Lists and dicts cannot be keys.
bool hashable(const Value& value);

}  // namespace minfer::jinja
