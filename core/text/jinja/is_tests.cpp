// The tests of templates: {{ value is defined }}, {{ n is divisibleby 3 }}.
#include "text/jinja/is_tests.hpp"

#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/string_ops.hpp"

namespace minfer::jinja {

namespace {

template <bool (*kPredicate)(const Value&)>
Result<bool> plain(Runtime&, const Value& value, const Args& args) {
  MINFER_TRY(bind(args, "this test", {}));
  return kPredicate(value);
}

template <CompareOp kOp>
Result<bool> comparison(Runtime& rt, const Value& value, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, symbol(kOp), {"other"}, 1));
  return compare(rt, kOp, value, *p[0]);
}

Result<bool> modulo_is(Runtime& rt, const Value& value, const Value& divisor, int64_t wanted) {
  MINFER_ASSIGN(const Value rest, binary(rt, BinaryOp::kMod, value, divisor));
  return equals(rt, rest, Value(wanted));
}

Result<bool> divisible_by(Runtime& rt, const Value& value, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "divisibleby", {"num"}, 1));
  return modulo_is(rt, value, *p[0], 0);
}

template <bool (*kPredicate)(std::string_view)>
Result<bool> of_text(Runtime& rt, const Value& value, const Args& args) {
  MINFER_TRY(bind(args, "this test", {}));
  MINFER_ASSIGN(const std::string s, to_str(rt, value));
  return kPredicate(s);
}

bool defined(const Value& v) { return !v.is_undefined(); }
bool undefined(const Value& v) { return v.is_undefined(); }
bool none(const Value& v) { return v.is_none(); }
bool boolean(const Value& v) { return v.is_bool(); }
bool is_true(const Value& v) { return v.is_bool() && truthy(v); }
bool is_false(const Value& v) { return v.is_bool() && !truthy(v); }
bool integer(const Value& v) { return v.is_int(); }
bool is_float(const Value& v) { return v.is_float(); }
bool number(const Value& v) { return v.is_number(); }
bool string(const Value& v) { return v.is_string(); }
bool mapping(const Value& v) { return v.is_dict(); }
bool escaped(const Value& v) { return v.is_markup(); }
// Python's Undefined has no items but can be iterated and has __getitem__.
bool iterable(const Value& v) { return v.is_undefined() || v.is_string() || v.is_dict() || v.list() || v.loop(); }
bool sequence(const Value& v) {
  if (const List* list = v.list()) {
    return list->kind == List::Kind::kList || list->kind == List::Kind::kTuple || list->kind == List::Kind::kRange;
  }
  return v.is_undefined() || v.is_string() || v.is_dict();
}
bool is_callable(const Value& v) { return v.callable() || v.loop() || v.is_undefined(); }
bool is_filter_name(const Value& v) { return v.is_string() && find_filter(v.string()); }
bool is_test_name(const Value& v) { return v.is_string() && find_test(v.string()); }

// Identity: of objects, and of None, True and False.
Result<bool> same_as(Runtime& rt, const Value& value, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "sameas", {"other"}, 1));
  const Value& other = *p[0];
  if (value.data().index() != other.data().index()) return false;
  if (value.list()) return value.list() == other.list();
  if (value.is_dict()) return &value.dict() == &other.dict();
  return equals(rt, value, other);
}

struct Entry {
  std::string_view name;
  Test test;
};

constexpr Entry kTests[] = {
    {"defined", plain<defined>},
    {"undefined", plain<undefined>},
    {"none", plain<none>},
    {"boolean", plain<boolean>},
    {"true", plain<is_true>},
    {"false", plain<is_false>},
    {"integer", plain<integer>},
    {"float", plain<is_float>},
    {"number", plain<number>},
    {"string", plain<string>},
    {"mapping", plain<mapping>},
    {"iterable", plain<iterable>},
    {"sequence", plain<sequence>},
    {"callable", plain<is_callable>},
    {"escaped", plain<escaped>},
    {"filter", plain<is_filter_name>},
    {"test", plain<is_test_name>},
    {"odd", [](Runtime& rt, const Value& v, const Args&) { return modulo_is(rt, v, Value(2), 1); }},
    {"even", [](Runtime& rt, const Value& v, const Args&) { return modulo_is(rt, v, Value(2), 0); }},
    {"divisibleby", divisible_by},
    {"lower", of_text<is_lower_text>},
    {"upper", of_text<is_upper_text>},
    {"sameas", same_as},
    {"in", comparison<CompareOp::kIn>},
    {"==", comparison<CompareOp::kEq>},
    {"eq", comparison<CompareOp::kEq>},
    {"equalto", comparison<CompareOp::kEq>},
    {"!=", comparison<CompareOp::kNe>},
    {"ne", comparison<CompareOp::kNe>},
    {">", comparison<CompareOp::kGt>},
    {"gt", comparison<CompareOp::kGt>},
    {"greaterthan", comparison<CompareOp::kGt>},
    {">=", comparison<CompareOp::kGe>},
    {"ge", comparison<CompareOp::kGe>},
    {"<", comparison<CompareOp::kLt>},
    {"lt", comparison<CompareOp::kLt>},
    {"lessthan", comparison<CompareOp::kLt>},
    {"<=", comparison<CompareOp::kLe>},
    {"le", comparison<CompareOp::kLe>},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const Entry& entry : kTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace minfer::jinja
