// Runs a parsed template: walks statements and expressions over scopes of variables and appends to the output.
// One Interpreter per render; the tree must outlive it. Errors begin with "line N: ".
#pragma once

#include "text/jinja/ast.hpp"

namespace minfer::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

// Names of one block; a name that it lacks is looked up in the scopes around it.
struct Scope {
  explicit Scope(std::shared_ptr<Scope> around) : parent(std::move(around)) {}
  void set(std::string_view name, Value value);
  const Value* find(std::string_view name) const;
  const Value* find_here(std::string_view name) const;  // not in the scopes around it

  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> variables;
};
using ScopePtr = std::shared_ptr<Scope>;

class Interpreter {
 public:
  explicit Interpreter(Runtime& rt) : rt_(rt) {}
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Result<std::string> render(const Body& body, const Variables& variables);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  // Statements (execute.cpp).
  Result<Flow> run(const Body& body, const ScopePtr& scope, std::string& out);
  Result<Flow> run(const Stmt& stmt, const ScopePtr& scope, std::string& out);
  Result<Flow> run_if(const Stmt& stmt, const ScopePtr& scope, std::string& out);
  Result<Flow> run_with(const Stmt& stmt, const ScopePtr& scope, std::string& out);
  Status run_set_block(const Stmt& stmt, const ScopePtr& scope);
  Result<Flow> run_filter_block(const Stmt& stmt, const ScopePtr& scope, std::string& out);
  Result<Flow> run_for(const Stmt& stmt, const Value& iterable, const ScopePtr& scope, size_t depth0, std::string& out);
  Result<std::vector<Value>> loop_items(const Stmt& stmt, const Value& iterable, const ScopePtr& scope);
  Status run_call_block(const Stmt& stmt, const ScopePtr& scope, std::string& out);
  // A macro, or the body of a call block.
  Value make_macro(const Stmt& stmt, const ScopePtr& scope);
  Result<Value> call_macro(const Stmt& macro, const ScopePtr& around, const Args& args);
  Status assign(const Target& target, const Value& value, Scope& scope, const ScopePtr& lookup);
  Status emit(std::string& out, std::string_view piece);

  // Expressions (evaluate.cpp).
  Result<Value> eval(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_name(const Expr& expr, const Scope& scope);
  Result<Value> eval_items(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_dict(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_slice(const Expr& expr, const ScopePtr& scope);
  // `caller`: of a call block, else null.
  Result<Value> eval_call(const Expr& expr, const ScopePtr& scope, const Value* caller = nullptr);
  Result<Value> eval_filter(const Expr& expr, const ScopePtr& scope);
  Result<Value> call_filter(const Expr& expr, const Value& input, const Args& args);
  Result<Value> apply_filters(const Expr& expr, const Value& input, const ScopePtr& scope);
  Result<Value> eval_test(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_concat(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_compare(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_unary(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_binary(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_logic(const Expr& expr, const ScopePtr& scope);
  Result<Value> eval_condition(const Expr& expr, const ScopePtr& scope);
  Result<Args> eval_arguments(const Arguments& arguments, const ScopePtr& scope);

  // Puts the line in front of an error, once: an error on its way up keeps its first place.
  Error at(int line, const Error& error);
  template <class T>
  Result<T> at(int line, Result<T> result) {
    return result.ok() ? std::move(result) : Result<T>(at(line, result.error()));
  }
  Status at(int line, const Status& status) { return status.ok() ? Status() : Status(at(line, status.error())); }

  Runtime& rt_;
  bool placed_ = false;             // an error has its line
  std::vector<ScopePtr> captured_;  // scopes that macros refer to: emptied at the end, since a macro lives in its own scope
};

// The functions every template can call: range, namespace, dict, raise_exception, strftime_now, cycler, joiner.
void define_globals(Scope& scope);

}  // namespace minfer::jinja
