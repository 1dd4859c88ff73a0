// Statements of a template: output, conditions, loops, assignments, macros and scoped blocks.
#include <algorithm>

#include "text/jinja/interpreter.hpp"
#include "text/jinja/repr.hpp"

namespace minfer::jinja {

void Scope::set(std::string_view name, Value value) {
  for (auto& [key, old] : variables) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(std::string(name), std::move(value));
}

const Value* Scope::find_here(std::string_view name) const {
  for (const auto& [key, value] : variables) {
    if (key == name) return &value;
  }
  return nullptr;
}

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent.get()) {
    if (const Value* found = scope->find_here(name)) return found;
  }
  return nullptr;
}

Interpreter::~Interpreter() {
  for (const ScopePtr& scope : captured_) scope->variables.clear();
}

Error Interpreter::at(int line, const Error& error) {
  if (placed_) return error;
  placed_ = true;
  return error.in(text("line {}", line));
}

Result<std::string> Interpreter::render(const Body& body, const Variables& variables) {
  const auto globals = std::make_shared<Scope>(nullptr);
  define_globals(*globals);
  const auto context = std::make_shared<Scope>(globals);
  for (const auto& [name, value] : variables) context->set(name, value);
  std::string out;
  MINFER_TRY(run(body, std::make_shared<Scope>(context), out));
  return out;
}

Status Interpreter::emit(std::string& out, std::string_view piece) {
  if (out.size() + piece.size() > rt_.limits().max_output_bytes) return rt_.charge_bytes(out.size() + piece.size());
  out += piece;
  return rt_.charge(piece.size() / 64);
}

Result<Interpreter::Flow> Interpreter::run(const Body& body, const ScopePtr& scope, std::string& out) {
  for (const auto& stmt : body) {
    MINFER_ASSIGN(const Flow flow, run(*stmt, scope, out));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const Stmt& stmt, const ScopePtr& scope, std::string& out) {
  const DepthGuard guard(rt_);
  MINFER_TRY(at(stmt.line, guard.status()));
  MINFER_TRY(at(stmt.line, rt_.charge(1)));
  switch (stmt.kind) {
    case StmtKind::kText: MINFER_TRY(at(stmt.line, emit(out, stmt.text))); return Flow::kNext;
    case StmtKind::kOutput: {
      MINFER_ASSIGN(const Value value, eval(*stmt.expr, scope));
      MINFER_ASSIGN(const std::string piece, at(stmt.line, to_str(rt_, value)));
      MINFER_TRY(at(stmt.line, emit(out, piece)));
      return Flow::kNext;
    }
    case StmtKind::kIf: return run_if(stmt, scope, out);
    case StmtKind::kFor: {
      MINFER_ASSIGN(const Value iterable, eval(*stmt.expr, scope));
      return run_for(stmt, iterable, scope, 0, out);
    }
    case StmtKind::kSet: {
      MINFER_ASSIGN(const Value value, eval(*stmt.expr, scope));
      MINFER_TRY(assign(stmt.target, value, *scope, scope));
      return Flow::kNext;
    }
    case StmtKind::kSetBlock: MINFER_TRY(run_set_block(stmt, scope)); return Flow::kNext;
    case StmtKind::kMacro: scope->set(stmt.text, make_macro(stmt, scope)); return Flow::kNext;
    case StmtKind::kCallBlock: MINFER_TRY(run_call_block(stmt, scope, out)); return Flow::kNext;
    case StmtKind::kWith: return run_with(stmt, scope, out);
    case StmtKind::kFilterBlock: return run_filter_block(stmt, scope, out);
    case StmtKind::kScope: return run(stmt.body, std::make_shared<Scope>(scope), out);
    case StmtKind::kBreak: return Flow::kBreak;
    case StmtKind::kContinue: return Flow::kContinue;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_if(const Stmt& stmt, const ScopePtr& scope, std::string& out) {
  for (const Branch& branch : stmt.branches) {
    MINFER_ASSIGN(const Value condition, eval(*branch.condition, scope));
    if (truthy(condition)) return run(branch.body, scope, out);
  }
  return run(stmt.else_body, scope, out);
}

Result<Interpreter::Flow> Interpreter::run_with(const Stmt& stmt, const ScopePtr& scope, std::string& out) {
  const auto inner = std::make_shared<Scope>(scope);
  for (const auto& [target, expr] : stmt.assignments) {
    MINFER_ASSIGN(const Value value, eval(*expr, scope));
    MINFER_TRY(assign(target, value, *inner, scope));
  }
  return run(stmt.body, inner, out);
}

Status Interpreter::run_set_block(const Stmt& stmt, const ScopePtr& scope) {
  std::string captured;
  MINFER_TRY(run(stmt.body, std::make_shared<Scope>(scope), captured));
  Value value(std::move(captured));
  if (stmt.expr) {
    MINFER_ASSIGN(value, apply_filters(*stmt.expr, value, scope));
  }
  return assign(stmt.target, value, *scope, scope);
}

Result<Interpreter::Flow> Interpreter::run_filter_block(const Stmt& stmt, const ScopePtr& scope, std::string& out) {
  std::string captured;
  MINFER_ASSIGN(const Flow flow, run(stmt.body, std::make_shared<Scope>(scope), captured));
  MINFER_ASSIGN(const Value value, apply_filters(*stmt.expr, Value(std::move(captured)), scope));
  MINFER_ASSIGN(const std::string piece, at(stmt.line, to_str(rt_, value)));
  MINFER_TRY(at(stmt.line, emit(out, piece)));
  return flow;
}

Result<std::vector<Value>> Interpreter::loop_items(const Stmt& stmt, const Value& iterable, const ScopePtr& scope) {
  MINFER_ASSIGN(auto items, at(stmt.line, items_of(rt_, iterable)));
  if (!stmt.condition) return items;
  std::vector<Value> chosen;
  for (const Value& item : items) {
    const auto inner = std::make_shared<Scope>(scope);
    MINFER_TRY(assign(stmt.target, item, *inner, scope));
    MINFER_ASSIGN(const Value keep, eval(*stmt.condition, inner));
    if (truthy(keep)) chosen.push_back(item);
  }
  return chosen;
}

Result<Interpreter::Flow> Interpreter::run_for(const Stmt& stmt, const Value& iterable, const ScopePtr& scope, size_t depth0,
                                               std::string& out) {
  const auto loop = std::make_shared<Loop>();
  MINFER_ASSIGN(loop->items, loop_items(stmt, iterable, scope));
  loop->depth0 = depth0;
  if (stmt.recursive) {
    loop->recurse = [this, &stmt, scope, depth0](Runtime&, const Value& inner) -> Result<Value> {
      std::string text;
      MINFER_TRY(run_for(stmt, inner, scope, depth0 + 1, text));
      return Value(std::move(text));
    };
  }
  bool completed = false;  // an iteration ran to its end: Jinja's condition for leaving out the else block
  for (; loop->index0 < loop->items.size(); ++loop->index0) {
    const auto inner = std::make_shared<Scope>(scope);
    inner->set("loop", Value(loop));
    MINFER_TRY(assign(stmt.target, loop->items[loop->index0], *inner, scope));
    MINFER_ASSIGN(const Flow flow, run(stmt.body, inner, out));
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNext;
    MINFER_TRY(at(stmt.line, rt_.charge(1)));
  }
  return completed ? Result<Flow>(Flow::kNext) : run(stmt.else_body, std::make_shared<Scope>(scope), out);
}

Status Interpreter::assign(const Target& target, const Value& value, Scope& scope, const ScopePtr& lookup) {
  switch (target.kind) {
    case Target::Kind::kName: scope.set(target.name, value); return {};
    case Target::Kind::kAttribute: {
      const Value* object = lookup->find(target.name);
      if (!object) return at(target.line, invalid("'{}' is undefined", target.name));
      if (!object->ns()) {
        return at(target.line, invalid("cannot assign attribute '{}' on '{}', which is no namespace", target.attribute, target.name));
      }
      object->ns()->set(target.attribute, value);
      return {};
    }
    case Target::Kind::kTuple: break;
  }
  MINFER_ASSIGN(const auto items, at(target.line, items_of(rt_, value)));
  if (items.size() != target.items.size()) {
    return at(target.line, invalid("cannot unpack {} values into {} names", items.size(), target.items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) MINFER_TRY(assign(target.items[i], items[i], scope, lookup));
  return {};
}

Status Interpreter::run_call_block(const Stmt& stmt, const ScopePtr& scope, std::string& out) {
  const Value caller = make_macro(stmt, scope);
  MINFER_ASSIGN(const Value value, eval_call(*stmt.expr, scope, &caller));
  MINFER_ASSIGN(const std::string piece, at(stmt.line, to_str(rt_, value)));
  return at(stmt.line, emit(out, piece));
}

Value Interpreter::make_macro(const Stmt& stmt, const ScopePtr& scope) {
  if (captured_.empty() || captured_.back() != scope) captured_.push_back(scope);
  const auto call = [this, &stmt, scope](Runtime&, const Args& args) { return call_macro(stmt, scope, args); };
  return Value(std::make_shared<Callable>(Callable{stmt.text, call}));
}

Result<Value> Interpreter::call_macro(const Stmt& macro, const ScopePtr& around, const Args& args) {
  const auto inner = std::make_shared<Scope>(around);
  const size_t count = macro.parameters.size();
  auto keyword = args.keyword;
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    const auto named = std::find_if(keyword.begin(), keyword.end(), [&](const auto& k) { return k.first == parameter.name; });
    if (i < args.positional.size()) {
      inner->set(parameter.name, args.positional[i]);
    } else if (named != keyword.end()) {
      inner->set(parameter.name, named->second);
      keyword.erase(named);
    } else if (parameter.fallback) {
      MINFER_ASSIGN(Value value, eval(*parameter.fallback, inner));
      inner->set(parameter.name, std::move(value));
    } else {
      inner->set(parameter.name, Value::undefined(text("parameter '{}' was not provided", parameter.name)));
    }
  }
  if (macro.names.caller && !inner->find_here("caller")) {
    const auto given = std::find_if(keyword.begin(), keyword.end(), [](const auto& k) { return k.first == "caller"; });
    inner->set("caller", given != keyword.end() ? given->second : Value::undefined("no caller defined"));
    if (given != keyword.end()) keyword.erase(given);
  }
  if (macro.names.kwargs) {
    auto rest = std::make_shared<Dict>();
    for (auto& [name, value] : keyword) rest->set(Value(name), std::move(value));
    inner->set("kwargs", Value(std::move(rest)));
  } else if (!keyword.empty()) {
    return invalid("macro '{}' takes no keyword argument '{}'", macro.text, keyword[0].first);
  }
  if (macro.names.varargs) {
    const auto from = args.positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, args.positional.size()));
    inner->set("varargs", make_tuple({from, args.positional.end()}));
  } else if (args.positional.size() > count) {
    return invalid("macro '{}' takes not more than {} argument(s)", macro.text, count);
  }
  std::string out;
  MINFER_TRY(run(macro.body, inner, out));
  return Value(std::move(out));
}

}  // namespace minfer::jinja
