// The syntax tree of a template: expressions and statements as plain data, every node with its line.
// Built by the parser, read by the interpreter, never changed in between.
#pragma once

#include <memory>

#include "text/jinja/filters.hpp"
#include "text/jinja/is_tests.hpp"
#include "text/jinja/operators.hpp"

namespace minfer::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind : uint8_t {
  kConst,    // value
  kName,     // name
  kTuple,    // items
  kList,     // items
  kDict,     // items: key, value, key, value ...
  kGetAttr,  // items[0] . name
  kGetItem,  // items[0] [ items[1] ]
  kSlice,    // items[0] [ items[1] : items[2] : items[3] ], absent ones null
  kCall,     // items[0] ( arguments )
  kFilter,   // items[0] | filter ( arguments ); items[0] null: the text of a block
  kTest,     // items[0] is test ( arguments )
  kNot,      // items[0]
  kNegate,
  kPositive,
  kBinary,   // items[0] op items[1]
  kConcat,   // items joined as text
  kCompare,  // items[0] compares[0] items[1] compares[1] items[2] ...
  kAnd,
  kOr,
  kCond,  // items[1] if items[0] else items[2]; items[2] may be null
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr star;       // *args
  ExprPtr star_star;  // **kwargs
};

struct Expr {
  ExprKind kind = ExprKind::kConst;
  int line = 0;
  int depth = 1;  // of the tree below
  std::string name;
  Value value;
  std::vector<ExprPtr> items;
  Arguments arguments;
  BinaryOp op = BinaryOp::kAdd;
  std::vector<CompareOp> compares;
  Filter filter = nullptr;  // null: unknown, and an error when reached
  Test test = nullptr;
};

struct Target {
  enum class Kind : uint8_t { kName, kAttribute, kTuple };  // x; ns.x; a, b
  Kind kind = Kind::kName;
  int line = 0;
  std::string name;
  std::string attribute;
  std::vector<Target> items;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

enum class StmtKind : uint8_t {
  kText,         // text
  kOutput,       // expr
  kIf,           // branches, else_body
  kFor,          // target, expr, condition, recursive, body, else_body
  kSet,          // target, expr
  kSetBlock,     // target, filters (expr or null), body
  kMacro,        // text (name), parameters, body
  kWith,         // assignments, body
  kFilterBlock,  // expr, body
  kCallBlock,    // expr (a call), parameters, body: the body is the callee's `caller`
  kScope,        // body (the generation tag)
  kBreak,
  kContinue,
};

struct Branch {
  ExprPtr condition;
  Body body;
};

struct Parameter {
  std::string name;
  ExprPtr fallback;  // null: none
};

// Which of the names that only a macro knows its body uses.
struct MacroNames {
  bool varargs = false;
  bool kwargs = false;
  bool caller = false;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  std::string text;
  ExprPtr expr;
  ExprPtr condition;
  bool recursive = false;
  Target target;
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  MacroNames names;  // of a macro or a call block
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Body body;
  Body else_body;
};

}  // namespace minfer::jinja
