// The token cursor and the grammar of expressions, with Jinja's precedences. The statement parser stands on it.
#pragma once

#include "text/jinja/ast.hpp"
#include "text/jinja/token.hpp"

namespace minfer::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  static constexpr int kMaxDepth = 200;              // levels of the tree: nested brackets, operators in a row
  static constexpr int kMaxNesting = 2 * kMaxDepth;  // calls of the parser itself: two for a bracket

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_op(std::string_view op) const { return current().kind == TokenKind::kOperator && current().text == op; }
  bool is_name(std::string_view name) const { return current().kind == TokenKind::kName && current().text == name; }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  Status expect_op(std::string_view op);
  Status expect_name(std::string_view name);
  Result<std::string> expect_identifier();

  Error error(const Error& e) const { return error(e, current().line); }
  static Error error(const Error& e, int line) { return e.in(text("line {}", line)); }
  Error unexpected(std::string_view expected) const;

  Result<ExprPtr> parse_expression(bool with_condition = true);
  // An expression, or a tuple where commas follow; an empty one only in parentheses.
  Result<ExprPtr> parse_tuple(bool with_condition, bool in_parentheses = false);
  // "| name(args) | ..." applied to `input` (null: the text of a block). `first_inline`: the first comes without its bar.
  Result<ExprPtr> parse_filters(ExprPtr input, bool first_inline = false);

  // Names that the expressions since the last reset use; a macro asks whether its body uses varargs, kwargs or caller.
  MacroNames names_;
  // The first filter or test that does not exist. Where a condition decides whether it is reached (an if block, an inline if), that
  // is an error of the run, as in Jinja; anywhere else the template is refused.
  std::optional<Error> unknown_;
  int nesting_ = 0;

 private:
  Result<ExprPtr> parse_condition();
  Result<ExprPtr> parse_or();
  Result<ExprPtr> parse_and();
  Result<ExprPtr> parse_not();
  Result<ExprPtr> parse_compare();
  Result<ExprPtr> parse_sum();
  Result<ExprPtr> parse_concat();
  Result<ExprPtr> parse_product();
  Result<ExprPtr> parse_power();
  Result<ExprPtr> parse_unary(bool with_filters);
  Result<ExprPtr> parse_postfix(ExprPtr node);
  Result<ExprPtr> parse_filters_and_tests(ExprPtr node);
  Result<ExprPtr> parse_primary();
  Result<ExprPtr> parse_list();
  Result<ExprPtr> parse_dict();
  Result<ExprPtr> parse_subscript(ExprPtr node);
  Result<ExprPtr> parse_subscript_part(ExprPtr node);
  Result<ExprPtr> parse_call(ExprPtr callee);
  Result<ExprPtr> parse_test(ExprPtr node);
  Result<Arguments> parse_arguments();
  Result<ExprPtr> parse_one_filter(ExprPtr input);

  // A node over these children; too deep a tree is an error.
  Result<ExprPtr> node(ExprKind kind, int line, std::vector<ExprPtr> items, Arguments arguments = {});

  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace minfer::jinja
