// The grammar of expressions, with Jinja's precedences: filters and tests bind tighter than arithmetic, ** is left-associative.
#include "text/jinja/expression_parser.hpp"

#include <algorithm>

namespace minfer::jinja {

namespace {

template <class... Ptrs>
std::vector<ExprPtr> list_of(Ptrs... items) {
  std::vector<ExprPtr> out;
  (out.push_back(std::move(items)), ...);
  return out;
}

// Counts nested parsing for its scope.
class Nesting {
 public:
  explicit Nesting(int& depth) : depth_(depth) { ++depth_; }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

}  // namespace

bool ExpressionParser::skip_op(std::string_view op) {
  if (!is_op(op)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  next();
  return true;
}

Error ExpressionParser::unexpected(std::string_view expected) const {
  return error(invalid("expected {}, found {}", expected, describe(current())));
}

Status ExpressionParser::expect_op(std::string_view op) {
  if (!skip_op(op)) return unexpected(text("'{}'", op));
  return {};
}

Status ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) return unexpected(text("'{}'", name));
  return {};
}

Result<std::string> ExpressionParser::expect_identifier() {
  if (current().kind != TokenKind::kName) return unexpected("a name");
  return next().text;
}

Result<ExprPtr> ExpressionParser::node(ExprKind kind, int line, std::vector<ExprPtr> items, Arguments arguments) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  const auto deepen = [&](const ExprPtr& child) {
    if (child) expr->depth = std::max(expr->depth, child->depth + 1);
  };
  for (const auto& child : items) deepen(child);
  for (const auto& child : arguments.positional) deepen(child);
  for (const auto& [name, child] : arguments.keyword) deepen(child);
  deepen(arguments.star);
  deepen(arguments.star_star);
  if (expr->depth > kMaxDepth) return error(unsupported("expression nested deeper than {} levels", kMaxDepth), line);
  expr->items = std::move(items);
  expr->arguments = std::move(arguments);
  return expr;
}

Result<ExprPtr> ExpressionParser::parse_tuple(bool with_condition, bool in_parentheses) {
  const int line = current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) MINFER_TRY(expect_op(","));
    const TokenKind kind = current().kind;
    if (kind == TokenKind::kOutputEnd || kind == TokenKind::kBlockEnd || is_op(")")) break;
    MINFER_ASSIGN(auto item, parse_expression(with_condition));
    items.push_back(std::move(item));
    if (!is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (!in_parentheses) return unexpected("an expression");
  }
  return node(ExprKind::kTuple, line, std::move(items));
}

Result<ExprPtr> ExpressionParser::parse_expression(bool with_condition) { return with_condition ? parse_condition() : parse_or(); }

Result<ExprPtr> ExpressionParser::parse_condition() {
  const Nesting nesting(nesting_);
  if (nesting_ > kMaxNesting) return error(unsupported("expression nested deeper than {} levels", kMaxDepth));
  const int line = current().line;
  const std::optional<Error> unknown_before = unknown_;
  MINFER_ASSIGN(auto value, parse_or());
  while (skip_name("if")) {
    MINFER_ASSIGN(auto condition, parse_or());
    ExprPtr otherwise;
    if (skip_name("else")) {
      MINFER_ASSIGN(otherwise, parse_condition());
    }
    MINFER_ASSIGN(value, node(ExprKind::kCond, line, list_of(std::move(condition), std::move(value), std::move(otherwise))));
    unknown_ = unknown_before;
  }
  return value;
}

Result<ExprPtr> ExpressionParser::parse_or() {
  const int line = current().line;
  MINFER_ASSIGN(auto left, parse_and());
  while (skip_name("or")) {
    MINFER_ASSIGN(auto right, parse_and());
    MINFER_ASSIGN(left, node(ExprKind::kOr, line, list_of(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_and() {
  const int line = current().line;
  MINFER_ASSIGN(auto left, parse_not());
  while (skip_name("and")) {
    MINFER_ASSIGN(auto right, parse_not());
    MINFER_ASSIGN(left, node(ExprKind::kAnd, line, list_of(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_not() {
  if (!is_name("not")) return parse_compare();
  const Nesting nesting(nesting_);
  if (nesting_ > kMaxNesting) return error(unsupported("expression nested deeper than {} levels", kMaxDepth));
  const int line = next().line;
  MINFER_ASSIGN(auto operand, parse_not());
  return node(ExprKind::kNot, line, list_of(std::move(operand)));
}

Result<ExprPtr> ExpressionParser::parse_compare() {
  const int line = current().line;
  MINFER_ASSIGN(auto first, parse_sum());
  std::vector<ExprPtr> items = list_of(std::move(first));
  std::vector<CompareOp> ops;
  constexpr CompareOp kAll[] = {CompareOp::kEq, CompareOp::kNe, CompareOp::kLt, CompareOp::kLe, CompareOp::kGt, CompareOp::kGe};
  while (true) {
    if (is_name("not") && ahead().kind == TokenKind::kName && ahead().text == "in") {
      next();
      next();
      ops.push_back(CompareOp::kNotIn);
    } else if (skip_name("in")) {
      ops.push_back(CompareOp::kIn);
    } else {
      const auto op = std::find_if(std::begin(kAll), std::end(kAll), [this](CompareOp o) { return is_op(symbol(o)); });
      if (op == std::end(kAll)) break;
      next();
      ops.push_back(*op);
    }
    MINFER_ASSIGN(auto operand, parse_sum());
    items.push_back(std::move(operand));
  }
  if (ops.empty()) return std::move(items[0]);
  MINFER_ASSIGN(auto expr, node(ExprKind::kCompare, line, std::move(items)));
  expr->compares = std::move(ops);
  return expr;
}

Result<ExprPtr> ExpressionParser::parse_sum() {
  MINFER_ASSIGN(auto left, parse_concat());
  while (is_op("+") || is_op("-")) {
    const Token op = next();
    MINFER_ASSIGN(auto right, parse_concat());
    MINFER_ASSIGN(left, node(ExprKind::kBinary, op.line, list_of(std::move(left), std::move(right))));
    left->op = op.text == "+" ? BinaryOp::kAdd : BinaryOp::kSub;
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_concat() {
  const int line = current().line;
  MINFER_ASSIGN(auto first, parse_product());
  if (!is_op("~")) return first;
  std::vector<ExprPtr> items = list_of(std::move(first));
  while (skip_op("~")) {
    MINFER_ASSIGN(auto operand, parse_product());
    items.push_back(std::move(operand));
  }
  return node(ExprKind::kConcat, line, std::move(items));
}

Result<ExprPtr> ExpressionParser::parse_product() {
  MINFER_ASSIGN(auto left, parse_power());
  while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
    const Token op = next();
    MINFER_ASSIGN(auto right, parse_power());
    MINFER_ASSIGN(left, node(ExprKind::kBinary, op.line, list_of(std::move(left), std::move(right))));
    left->op = op.text == "*" ? BinaryOp::kMul : op.text == "/" ? BinaryOp::kDiv : op.text == "//" ? BinaryOp::kFloorDiv : BinaryOp::kMod;
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_power() {
  MINFER_ASSIGN(auto left, parse_unary(true));
  while (is_op("**")) {
    const int line = next().line;
    MINFER_ASSIGN(auto right, parse_unary(true));
    MINFER_ASSIGN(left, node(ExprKind::kBinary, line, list_of(std::move(left), std::move(right))));
    left->op = BinaryOp::kPow;
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_unary(bool with_filters) {
  const Nesting nesting(nesting_);
  if (nesting_ > kMaxNesting) return error(unsupported("expression nested deeper than {} levels", kMaxDepth));
  ExprPtr expr;
  if (is_op("-") || is_op("+")) {
    const Token op = next();
    MINFER_ASSIGN(auto operand, parse_unary(false));
    MINFER_ASSIGN(expr, node(op.text == "-" ? ExprKind::kNegate : ExprKind::kPositive, op.line, list_of(std::move(operand))));
  } else {
    MINFER_ASSIGN(expr, parse_primary());
  }
  MINFER_ASSIGN(expr, parse_postfix(std::move(expr)));
  return with_filters ? parse_filters_and_tests(std::move(expr)) : Result<ExprPtr>(std::move(expr));
}

Result<ExprPtr> ExpressionParser::parse_primary() {
  const int line = current().line;
  const auto constant = [&](Value value) -> Result<ExprPtr> {
    MINFER_ASSIGN(auto expr, node(ExprKind::kConst, line, {}));
    expr->value = std::move(value);
    return expr;
  };
  switch (current().kind) {
    case TokenKind::kName: {
      const std::string name = next().text;
      if (name == "true" || name == "True") return constant(Value(true));
      if (name == "false" || name == "False") return constant(Value(false));
      if (name == "none" || name == "None") return constant(Value());
      names_.varargs = names_.varargs || name == "varargs";
      names_.kwargs = names_.kwargs || name == "kwargs";
      names_.caller = names_.caller || name == "caller";
      MINFER_ASSIGN(auto expr, node(ExprKind::kName, line, {}));
      expr->name = name;
      return expr;
    }
    case TokenKind::kString: {
      std::string value;
      while (current().kind == TokenKind::kString) value += next().text;  // neighbours join, as in Python
      return constant(Value(std::move(value)));
    }
    case TokenKind::kInteger: return constant(Value(next().integer));
    case TokenKind::kFloat: return constant(Value(next().number));
    default: break;
  }
  if (skip_op("(")) {
    MINFER_ASSIGN(auto expr, parse_tuple(true, true));
    MINFER_TRY(expect_op(")"));
    return expr;
  }
  if (is_op("[")) return parse_list();
  if (is_op("{")) return parse_dict();
  return unexpected("an expression");
}

Result<ExprPtr> ExpressionParser::parse_list() {
  const int line = next().line;
  std::vector<ExprPtr> items;
  while (!is_op("]")) {
    if (!items.empty()) MINFER_TRY(expect_op(","));
    if (is_op("]")) break;
    MINFER_ASSIGN(auto item, parse_expression());
    items.push_back(std::move(item));
  }
  MINFER_TRY(expect_op("]"));
  return node(ExprKind::kList, line, std::move(items));
}

Result<ExprPtr> ExpressionParser::parse_dict() {
  const int line = next().line;
  std::vector<ExprPtr> items;
  while (!is_op("}")) {
    if (!items.empty()) MINFER_TRY(expect_op(","));
    if (is_op("}")) break;
    MINFER_ASSIGN(auto key, parse_expression());
    MINFER_TRY(expect_op(":"));
    MINFER_ASSIGN(auto value, parse_expression());
    items.push_back(std::move(key));
    items.push_back(std::move(value));
  }
  MINFER_TRY(expect_op("}"));
  return node(ExprKind::kDict, line, std::move(items));
}

Result<ExprPtr> ExpressionParser::parse_postfix(ExprPtr expr) {
  while (true) {
    if (is_op(".") || is_op("[")) {
      MINFER_ASSIGN(expr, parse_subscript(std::move(expr)));
    } else if (is_op("(")) {
      MINFER_ASSIGN(expr, parse_call(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_filters_and_tests(ExprPtr expr) {
  while (true) {
    if (is_op("|")) {
      MINFER_ASSIGN(expr, parse_filters(std::move(expr)));
    } else if (is_name("is")) {
      MINFER_ASSIGN(expr, parse_test(std::move(expr)));
    } else if (is_op("(")) {
      MINFER_ASSIGN(expr, parse_call(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_subscript(ExprPtr object) {
  const Token open = next();
  if (open.text == ".") {
    if (current().kind == TokenKind::kName) {
      const std::string name = next().text;
      MINFER_ASSIGN(auto expr, node(ExprKind::kGetAttr, open.line, list_of(std::move(object))));
      expr->name = name;
      return expr;
    }
    if (current().kind != TokenKind::kInteger) return unexpected("a name or a number after '.'");
    MINFER_ASSIGN(auto index, node(ExprKind::kConst, open.line, {}));
    index->value = Value(next().integer);
    return node(ExprKind::kGetItem, open.line, list_of(std::move(object), std::move(index)));
  }
  if (is_op("]")) return unexpected("an index");
  MINFER_ASSIGN(auto expr, parse_subscript_part(std::move(object)));
  if (is_op(",")) return error(unsupported("an index of several parts is not supported"));
  MINFER_TRY(expect_op("]"));
  return expr;
}

// The index or slice between the brackets after `object`.
Result<ExprPtr> ExpressionParser::parse_subscript_part(ExprPtr object) {
  const int line = current().line;
  const auto part_absent = [this] { return is_op(":") || is_op("]") || is_op(","); };
  ExprPtr start;
  ExprPtr stop;
  ExprPtr step;
  if (!is_op(":")) {
    MINFER_ASSIGN(start, parse_expression());
    if (!is_op(":")) return node(ExprKind::kGetItem, line, list_of(std::move(object), std::move(start)));
  }
  MINFER_TRY(expect_op(":"));
  if (!part_absent()) {
    MINFER_ASSIGN(stop, parse_expression());
  }
  if (skip_op(":") && !part_absent()) {
    MINFER_ASSIGN(step, parse_expression());
  }
  return node(ExprKind::kSlice, line, list_of(std::move(object), std::move(start), std::move(stop), std::move(step)));
}

Result<Arguments> ExpressionParser::parse_arguments() {
  const int line = current().line;
  MINFER_TRY(expect_op("("));
  Arguments out;
  const auto misplaced = [&] { return error(invalid("invalid order of call arguments"), line); };
  for (bool first = true; !is_op(")"); first = false) {
    if (!first) {
      MINFER_TRY(expect_op(","));
      if (is_op(")")) break;
    }
    if (skip_op("*")) {
      if (out.star || out.star_star) return misplaced();
      MINFER_ASSIGN(out.star, parse_expression());
    } else if (skip_op("**")) {
      if (out.star_star) return misplaced();
      MINFER_ASSIGN(out.star_star, parse_expression());
    } else if (current().kind == TokenKind::kName && ahead().kind == TokenKind::kOperator && ahead().text == "=") {
      if (out.star_star) return misplaced();
      const std::string name = next().text;
      next();
      for (const auto& [other, value] : out.keyword) {
        if (other == name) return error(invalid("argument '{}' is given twice", name), line);
      }
      MINFER_ASSIGN(auto value, parse_expression());
      out.keyword.emplace_back(name, std::move(value));
    } else {
      if (out.star || out.star_star || !out.keyword.empty()) return misplaced();
      MINFER_ASSIGN(auto value, parse_expression());
      out.positional.push_back(std::move(value));
    }
  }
  MINFER_TRY(expect_op(")"));
  return out;
}

Result<ExprPtr> ExpressionParser::parse_call(ExprPtr callee) {
  const int line = current().line;
  MINFER_ASSIGN(auto arguments, parse_arguments());
  return node(ExprKind::kCall, line, list_of(std::move(callee)), std::move(arguments));
}

Result<ExprPtr> ExpressionParser::parse_one_filter(ExprPtr input) {
  const int line = current().line;
  MINFER_ASSIGN(std::string name, expect_identifier());
  while (skip_op(".")) {
    MINFER_ASSIGN(const std::string part, expect_identifier());
    name += "." + part;
  }
  const Filter filter = find_filter(name);
  if (!filter && !unknown_) unknown_ = error(unsupported("filter '{}' is not supported", name), line);
  Arguments arguments;
  if (is_op("(")) {
    MINFER_ASSIGN(arguments, parse_arguments());
  }
  MINFER_ASSIGN(auto expr, node(ExprKind::kFilter, line, list_of(std::move(input)), std::move(arguments)));
  expr->name = std::move(name);
  expr->filter = filter;
  return expr;
}

Result<ExprPtr> ExpressionParser::parse_filters(ExprPtr input, bool first_inline) {
  ExprPtr expr = std::move(input);
  while (first_inline || skip_op("|")) {
    first_inline = false;
    MINFER_ASSIGN(expr, parse_one_filter(std::move(expr)));
  }
  return expr;
}

Result<ExprPtr> ExpressionParser::parse_test(ExprPtr value) {
  const int line = next().line;
  const bool negated = skip_name("not");
  MINFER_ASSIGN(const std::string name, expect_identifier());
  const Test test = find_test(name);
  if (!test && !unknown_) unknown_ = error(unsupported("test '{}' is not supported", name), line);
  Arguments arguments;
  const TokenKind kind = current().kind;
  const bool operand_follows = kind == TokenKind::kName || kind == TokenKind::kString || kind == TokenKind::kInteger ||
                               kind == TokenKind::kFloat || is_op("[") || is_op("{");
  if (is_op("(")) {
    MINFER_ASSIGN(arguments, parse_arguments());
  } else if (operand_follows && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) return error(invalid("tests cannot be chained with 'is'"));
    MINFER_ASSIGN(auto operand, parse_primary());
    MINFER_ASSIGN(operand, parse_postfix(std::move(operand)));
    arguments.positional.push_back(std::move(operand));
  }
  MINFER_ASSIGN(auto expr, node(ExprKind::kTest, line, list_of(std::move(value)), std::move(arguments)));
  expr->name = name;
  expr->test = test;
  if (!negated) return expr;
  return node(ExprKind::kNot, line, list_of(std::move(expr)));
}

}  // namespace minfer::jinja
