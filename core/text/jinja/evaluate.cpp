// Expressions of a template.
#include "text/jinja/attributes.hpp"
#include "text/jinja/interpreter.hpp"
#include "text/jinja/repr.hpp"

namespace minfer::jinja {

Result<Value> Interpreter::eval(const Expr& expr, const ScopePtr& scope) {
  const DepthGuard guard(rt_);
  MINFER_TRY(at(expr.line, guard.status()));
  MINFER_TRY(at(expr.line, rt_.charge(1)));
  switch (expr.kind) {
    case ExprKind::kConst: return expr.value;
    case ExprKind::kName: return eval_name(expr, *scope);
    case ExprKind::kTuple:
    case ExprKind::kList: return eval_items(expr, scope);
    case ExprKind::kDict: return eval_dict(expr, scope);
    case ExprKind::kGetAttr: {
      MINFER_ASSIGN(const Value object, eval(*expr.items[0], scope));
      return at(expr.line, get_attribute(rt_, object, expr.name));
    }
    case ExprKind::kGetItem: {
      MINFER_ASSIGN(const Value object, eval(*expr.items[0], scope));
      MINFER_ASSIGN(const Value key, eval(*expr.items[1], scope));
      return at(expr.line, get_item(rt_, object, key));
    }
    case ExprKind::kSlice: return eval_slice(expr, scope);
    case ExprKind::kCall: return eval_call(expr, scope);
    case ExprKind::kFilter: return eval_filter(expr, scope);
    case ExprKind::kTest: return eval_test(expr, scope);
    case ExprKind::kNot:
    case ExprKind::kNegate:
    case ExprKind::kPositive: return eval_unary(expr, scope);
    case ExprKind::kBinary: return eval_binary(expr, scope);
    case ExprKind::kConcat: return eval_concat(expr, scope);
    case ExprKind::kCompare: return eval_compare(expr, scope);
    case ExprKind::kAnd:
    case ExprKind::kOr: return eval_logic(expr, scope);
    case ExprKind::kCond: return eval_condition(expr, scope);
  }
  return at(expr.line, internal_error("unknown expression"));
}

Result<Value> Interpreter::eval_name(const Expr& expr, const Scope& scope) {
  const Value* found = scope.find(expr.name);
  return found ? *found : Value::undefined(text("'{}' is undefined", expr.name));
}

Result<Value> Interpreter::eval_items(const Expr& expr, const ScopePtr& scope) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const auto& item : expr.items) {
    MINFER_ASSIGN(Value value, eval(*item, scope));
    items.push_back(std::move(value));
  }
  return make_view(std::move(items), expr.kind == ExprKind::kTuple ? List::Kind::kTuple : List::Kind::kList);
}

Result<Value> Interpreter::eval_dict(const Expr& expr, const ScopePtr& scope) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i < expr.items.size(); i += 2) {
    MINFER_ASSIGN(const Value key, eval(*expr.items[i], scope));
    MINFER_ASSIGN(Value value, eval(*expr.items[i + 1], scope));
    if (!hashable(key)) return at(expr.line, invalid("unhashable type: '{}'", type_name(key)));
    dict->set(key, std::move(value));
  }
  return Value(std::move(dict));
}

Result<Value> Interpreter::eval_slice(const Expr& expr, const ScopePtr& scope) {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i) {
    if (!expr.items[i]) continue;
    MINFER_ASSIGN(parts[i], eval(*expr.items[i], scope));
  }
  return at(expr.line, slice(rt_, parts[0], parts[1], parts[2], parts[3]));
}

Result<Args> Interpreter::eval_arguments(const Arguments& arguments, const ScopePtr& scope) {
  Args out;
  for (const auto& expr : arguments.positional) {
    MINFER_ASSIGN(Value value, eval(*expr, scope));
    out.positional.push_back(std::move(value));
  }
  if (arguments.star) {
    MINFER_ASSIGN(const Value rest, eval(*arguments.star, scope));
    MINFER_ASSIGN(const auto items, at(arguments.star->line, items_of(rt_, rest)));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  for (const auto& [name, expr] : arguments.keyword) {
    MINFER_ASSIGN(Value value, eval(*expr, scope));
    out.keyword.emplace_back(name, std::move(value));
  }
  if (!arguments.star_star) return out;
  MINFER_ASSIGN(const Value rest, eval(*arguments.star_star, scope));
  if (!rest.is_dict()) return at(arguments.star_star->line, invalid("argument after ** must be a mapping, not {}", type_name(rest)));
  MINFER_TRY(at(arguments.star_star->line, rt_.charge(rest.dict().size())));
  for (const auto& [key, value] : rest.dict().entries()) {
    if (!key.is_string()) return at(arguments.star_star->line, invalid("keywords must be strings"));
    for (const auto& [name, other] : out.keyword) {
      if (name == key.string()) return at(arguments.star_star->line, invalid("argument '{}' is given twice", name));
    }
    out.keyword.emplace_back(key.string(), value);
  }
  return out;
}

Result<Value> Interpreter::eval_call(const Expr& expr, const ScopePtr& scope, const Value* caller) {
  MINFER_ASSIGN(const Value callee, eval(*expr.items[0], scope));
  MINFER_ASSIGN(Args args, eval_arguments(expr.arguments, scope));
  if (caller) args.keyword.emplace_back("caller", *caller);
  if (callee.is_undefined()) return at(expr.line, invalid("{}", callee.undefined_message()));
  if (const Callable* callable = callee.callable()) return at(expr.line, callable->call(rt_, args));
  if (const Loop* loop = callee.loop()) {
    if (!loop->recurse) return at(expr.line, invalid("only a loop marked 'recursive' can be called"));
    if (args.positional.size() != 1) return at(expr.line, invalid("loop() takes one iterable"));
    return at(expr.line, loop->recurse(rt_, args.positional[0]));
  }
  return at(expr.line, invalid("'{}' object is not callable", type_name(callee)));
}

Result<Value> Interpreter::eval_filter(const Expr& expr, const ScopePtr& scope) {
  MINFER_ASSIGN(const Value input, eval(*expr.items[0], scope));
  MINFER_ASSIGN(const Args args, eval_arguments(expr.arguments, scope));
  return call_filter(expr, input, args);
}

Result<Value> Interpreter::call_filter(const Expr& expr, const Value& input, const Args& args) {
  if (!expr.filter) return at(expr.line, unsupported("filter '{}' is not supported", expr.name));
  auto result = expr.filter(rt_, input, args);
  if (!result.ok()) return at(expr.line, result.error().in(text("filter '{}'", expr.name)));
  return result;
}

// The chain of filters of a filter block or set block over its text.
Result<Value> Interpreter::apply_filters(const Expr& expr, const Value& input, const ScopePtr& scope) {
  std::vector<const Expr*> chain;
  for (const Expr* e = &expr; e; e = e->items[0].get()) chain.push_back(e);
  Value value = input;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    const Expr& filter = **it;
    MINFER_ASSIGN(const Args args, eval_arguments(filter.arguments, scope));
    MINFER_ASSIGN(value, call_filter(filter, value, args));
  }
  return value;
}

Result<Value> Interpreter::eval_test(const Expr& expr, const ScopePtr& scope) {
  MINFER_ASSIGN(const Value value, eval(*expr.items[0], scope));
  MINFER_ASSIGN(const Args args, eval_arguments(expr.arguments, scope));
  if (!expr.test) return at(expr.line, unsupported("test '{}' is not supported", expr.name));
  auto result = expr.test(rt_, value, args);
  if (!result.ok()) return at(expr.line, result.error().in(text("test '{}'", expr.name)));
  return Value(*result);
}

Result<Value> Interpreter::eval_concat(const Expr& expr, const ScopePtr& scope) {
  std::string out;
  for (const auto& item : expr.items) {
    MINFER_ASSIGN(const Value value, eval(*item, scope));
    MINFER_ASSIGN(const std::string piece, at(expr.line, to_str(rt_, value)));
    MINFER_TRY(at(expr.line, emit(out, piece)));
  }
  return Value(std::move(out));
}

Result<Value> Interpreter::eval_compare(const Expr& expr, const ScopePtr& scope) {
  MINFER_ASSIGN(Value left, eval(*expr.items[0], scope));
  for (size_t i = 0; i < expr.compares.size(); ++i) {
    MINFER_ASSIGN(Value right, eval(*expr.items[i + 1], scope));
    MINFER_ASSIGN(const bool holds, at(expr.line, compare(rt_, expr.compares[i], left, right)));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Interpreter::eval_unary(const Expr& expr, const ScopePtr& scope) {
  MINFER_ASSIGN(const Value operand, eval(*expr.items[0], scope));
  if (expr.kind == ExprKind::kNot) return Value(!truthy(operand));
  return at(expr.line, expr.kind == ExprKind::kNegate ? negate(operand) : positive(operand));
}

Result<Value> Interpreter::eval_binary(const Expr& expr, const ScopePtr& scope) {
  MINFER_ASSIGN(const Value left, eval(*expr.items[0], scope));
  MINFER_ASSIGN(const Value right, eval(*expr.items[1], scope));
  return at(expr.line, binary(rt_, expr.op, left, right));
}

Result<Value> Interpreter::eval_logic(const Expr& expr, const ScopePtr& scope) {
  MINFER_ASSIGN(Value left, eval(*expr.items[0], scope));
  if (truthy(left) == (expr.kind == ExprKind::kOr)) return left;
  return eval(*expr.items[1], scope);
}

Result<Value> Interpreter::eval_condition(const Expr& expr, const ScopePtr& scope) {
  MINFER_ASSIGN(const Value condition, eval(*expr.items[0], scope));
  if (truthy(condition)) return eval(*expr.items[1], scope);
  if (expr.items[2]) return eval(*expr.items[2], scope);
  return Value::undefined(text("the inline if-expression on line {} evaluated to false and no else section was defined", expr.line));
}

}  // namespace minfer::jinja
