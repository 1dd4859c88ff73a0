// The grammar of statements. Refuses by name the tags that chat templates do not need (include, import, extends, block ...).
#include "text/jinja/parser.hpp"

#include "text/jinja/expression_parser.hpp"

namespace minfer::jinja {

namespace {

using EndTags = std::initializer_list<std::string_view>;

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Result<Body> parse() {
    MINFER_ASSIGN(auto body, parse_body({}, "", 0));
    return body;
  }

 private:
  using StmtResult = Result<std::unique_ptr<Stmt>>;

  static std::unique_ptr<Stmt> stmt(StmtKind kind, int line) {
    auto s = std::make_unique<Stmt>();
    s->kind = kind;
    s->line = line;
    return s;
  }

  Status end_of_tag() {
    if (current().kind != TokenKind::kBlockEnd) return unexpected("'%}'");
    next();
    return {};
  }

  bool at_end_tag(EndTags ends) const {
    for (const std::string_view end : ends) {
      if (is_name(end)) return true;
    }
    return false;
  }

  // Statements until one of `ends`; that name is the current token then. `tag` and `line` are of what is open.
  Result<Body> parse_body(EndTags ends, std::string_view tag, int line) {
    if (tag == "if") return parse_statements(ends, tag, line);
    return whole([&] { return parse_statements(ends, tag, line); });
  }

  // What `parse` reads may lack no filter and no test, though conditions around it may keep it from being reached.
  template <class Parse>
  auto whole(Parse parse) -> decltype(parse()) {
    const auto outer = std::exchange(unknown_, std::nullopt);
    auto result = parse();
    if (result.ok() && unknown_) return *unknown_;
    unknown_ = outer;
    return result;
  }

  Result<Body> parse_statements(EndTags ends, std::string_view tag, int line) {
    if (++blocks_ > kMaxDepth / 2) return error(unsupported("blocks nested deeper than {} levels", kMaxDepth / 2));
    Body body;
    while (true) {
      const Token& token = current();
      if (token.kind == TokenKind::kEnd) {
        if (ends.size() == 0) break;
        return error(invalid("block '{}' is never closed", tag), line);
      }
      if (token.kind == TokenKind::kText) {
        auto s = stmt(StmtKind::kText, token.line);
        s->text = next().text;
        body.push_back(std::move(s));
      } else if (token.kind == TokenKind::kOutputBegin) {
        auto s = stmt(StmtKind::kOutput, next().line);
        MINFER_ASSIGN(s->expr, parse_tuple(true));
        if (current().kind != TokenKind::kOutputEnd) return unexpected("'}}'");
        next();
        body.push_back(std::move(s));
      } else if (token.kind == TokenKind::kBlockBegin) {
        next();
        if (at_end_tag(ends)) break;
        MINFER_ASSIGN(auto s, parse_statement());
        body.push_back(std::move(s));
      } else {
        return unexpected("text or a tag");
      }
    }
    --blocks_;
    return body;
  }

  // The body of a block tag whose head has been read: "%}" body "{% end %}".
  Result<Body> parse_block(std::string_view end, std::string_view tag, int line) {
    skip_op(":");
    MINFER_TRY(end_of_tag());
    MINFER_ASSIGN(auto body, parse_body({end}, tag, line));
    next();
    MINFER_TRY(end_of_tag());
    return body;
  }

  StmtResult parse_statement() {
    const int line = current().line;
    if (current().kind != TokenKind::kName) return unexpected("the name of a tag");
    const std::string tag = next().text;
    if (tag == "if") return parse_if(line);
    if (tag == "for") return parse_for(line);
    if (tag == "set") return parse_set(line);
    if (tag == "macro") return parse_macro(line);
    if (tag == "with") return parse_with(line);
    if (tag == "filter") return parse_filter_block(line);
    if (tag == "call") return parse_call_block(line);
    if (tag == "print") return parse_print(line);
    if (tag == "generation") {
      auto s = stmt(StmtKind::kScope, line);
      MINFER_ASSIGN(s->body, parse_block("endgeneration", tag, line));
      return s;
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) return error(invalid("'{}' outside of a for loop", tag), line);
      MINFER_TRY(end_of_tag());
      return stmt(tag == "break" ? StmtKind::kBreak : StmtKind::kContinue, line);
    }
    if (tag.starts_with("end") || tag == "else" || tag == "elif") return error(invalid("tag '{}' closes nothing", tag), line);
    return error(unsupported("tag '{}' is not supported", tag), line);
  }

  StmtResult parse_if(int line) {
    auto s = stmt(StmtKind::kIf, line);
    const auto unknown_before = unknown_;
    while (true) {
      Branch branch;
      MINFER_ASSIGN(branch.condition, parse_tuple(false));
      skip_op(":");
      MINFER_TRY(end_of_tag());
      MINFER_ASSIGN(branch.body, parse_body({"elif", "else", "endif"}, "if", line));
      s->branches.push_back(std::move(branch));
      const std::string tag = next().text;
      if (tag == "elif") continue;
      if (tag == "else") {
        MINFER_ASSIGN(s->else_body, parse_block("endif", "if", line));
      } else {
        MINFER_TRY(end_of_tag());
      }
      unknown_ = unknown_before;
      return s;
    }
  }

  StmtResult parse_for(int line) {
    auto s = stmt(StmtKind::kFor, line);
    MINFER_ASSIGN(s->target, parse_target(false));
    MINFER_TRY(expect_name("in"));
    MINFER_ASSIGN(s->expr, parse_tuple(false));
    if (skip_name("if")) {
      MINFER_ASSIGN(s->condition, whole([this] { return parse_expression(); }));
    }
    s->recursive = skip_name("recursive");
    skip_op(":");
    MINFER_TRY(end_of_tag());
    ++loops_;
    MINFER_ASSIGN(s->body, parse_body({"endfor", "else"}, "for", line));
    --loops_;
    if (next().text == "else") {
      MINFER_ASSIGN(s->else_body, parse_block("endfor", "for", line));
    } else {
      MINFER_TRY(end_of_tag());
    }
    return s;
  }

  StmtResult parse_set(int line) {
    auto s = stmt(StmtKind::kSet, line);
    MINFER_ASSIGN(s->target, parse_target(true));
    if (skip_op("=")) {
      MINFER_ASSIGN(s->expr, parse_tuple(true));
      MINFER_TRY(end_of_tag());
      return s;
    }
    s->kind = StmtKind::kSetBlock;
    MINFER_ASSIGN(s->expr, whole([this] { return parse_filters(nullptr); }));
    MINFER_ASSIGN(s->body, parse_block("endset", "set", line));
    return s;
  }

  // "(a, b=1)".
  Result<std::vector<Parameter>> parse_parameters(int line) {
    MINFER_TRY(expect_op("("));
    std::vector<Parameter> parameters;
    while (!is_op(")")) {
      if (!parameters.empty()) MINFER_TRY(expect_op(","));
      Parameter parameter;
      MINFER_ASSIGN(parameter.name, expect_identifier());
      if (skip_op("=")) {
        MINFER_ASSIGN(parameter.fallback, parse_expression());
      } else if (!parameters.empty() && parameters.back().fallback) {
        return error(invalid("parameter '{}' without default after one with default", parameter.name), line);
      }
      parameters.push_back(std::move(parameter));
    }
    MINFER_TRY(expect_op(")"));
    return parameters;
  }

  // The body of a macro or a call block: loops around it are not its own.
  Status parse_macro_body(Stmt& s, std::string_view end, std::string_view tag) {
    const int outer_loops = std::exchange(loops_, 0);
    const MacroNames outer = std::exchange(names_, {});
    MINFER_ASSIGN(s.body, parse_block(end, tag, s.line));
    s.names = std::exchange(names_, outer);
    loops_ = outer_loops;
    return {};
  }

  StmtResult parse_macro(int line) {
    auto s = stmt(StmtKind::kMacro, line);
    MINFER_ASSIGN(s->text, expect_identifier());
    MINFER_ASSIGN(s->parameters, parse_parameters(line));
    MINFER_TRY(parse_macro_body(*s, "endmacro", "macro"));
    return s;
  }

  // {% call(a) name(b) %} body {% endcall %}: name(b, caller=a macro with this body).
  StmtResult parse_call_block(int line) {
    auto s = stmt(StmtKind::kCallBlock, line);
    s->text = "caller";
    if (is_op("(")) {
      MINFER_ASSIGN(s->parameters, parse_parameters(line));
    }
    MINFER_ASSIGN(s->expr, parse_expression());
    if (s->expr->kind != ExprKind::kCall) return error(invalid("expected a call"), line);
    MINFER_TRY(parse_macro_body(*s, "endcall", "call"));
    return s;
  }

  StmtResult parse_with(int line) {
    auto s = stmt(StmtKind::kWith, line);
    while (current().kind != TokenKind::kBlockEnd) {
      if (!s->assignments.empty()) MINFER_TRY(expect_op(","));
      MINFER_ASSIGN(Target target, parse_target(false));
      MINFER_TRY(expect_op("="));
      MINFER_ASSIGN(auto value, parse_expression());
      s->assignments.emplace_back(std::move(target), std::move(value));
    }
    MINFER_ASSIGN(s->body, parse_block("endwith", "with", line));
    return s;
  }

  StmtResult parse_filter_block(int line) {
    auto s = stmt(StmtKind::kFilterBlock, line);
    MINFER_ASSIGN(s->expr, whole([this] { return parse_filters(nullptr, true); }));
    MINFER_ASSIGN(s->body, parse_block("endfilter", "filter", line));
    return s;
  }

  // {% print a, b %} prints a and b.
  StmtResult parse_print(int line) {
    auto s = stmt(StmtKind::kScope, line);
    while (current().kind != TokenKind::kBlockEnd) {
      if (!s->body.empty()) MINFER_TRY(expect_op(","));
      auto output = stmt(StmtKind::kOutput, line);
      MINFER_ASSIGN(output->expr, parse_expression());
      s->body.push_back(std::move(output));
    }
    MINFER_TRY(end_of_tag());
    return s;
  }

  // a; a, b; (a, b); ns.a where `attributes` allows it.
  Result<Target> parse_target(bool attributes) {
    const int line = current().line;
    Target tuple{Target::Kind::kTuple, line, "", "", {}};
    bool is_tuple = false;
    while (true) {
      if (!tuple.items.empty()) MINFER_TRY(expect_op(","));
      if (is_op("=") || is_op(")") || current().kind == TokenKind::kBlockEnd) break;
      MINFER_ASSIGN(Target item, parse_one_target(attributes));
      tuple.items.push_back(std::move(item));
      if (!is_op(",")) break;
      is_tuple = true;
    }
    if (tuple.items.empty()) return unexpected("a name to assign to");
    if (is_tuple) return tuple;
    Target only = std::move(tuple.items[0]);
    return only;
  }

  Result<Target> parse_one_target(bool attributes) {
    const int line = current().line;
    if (skip_op("(")) {
      if (++nesting_ > kMaxNesting) return error(unsupported("expression nested deeper than {} levels", kMaxDepth));
      MINFER_ASSIGN(Target inner, parse_target(attributes));
      --nesting_;
      MINFER_TRY(expect_op(")"));
      return inner;
    }
    if (current().kind != TokenKind::kName) return unexpected("a name to assign to");
    Target target{Target::Kind::kName, line, next().text, "", {}};
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (target.name == constant) return error(invalid("cannot assign to '{}'", constant), line);
    }
    if (attributes && skip_op(".")) {
      target.kind = Target::Kind::kAttribute;
      MINFER_ASSIGN(target.attribute, expect_identifier());
    }
    return target;
  }

  int loops_ = 0;   // for loops around the current statement, within the current macro
  int blocks_ = 0;  // block tags around it
};

}  // namespace

Result<Body> parse_template(std::string_view source) {
  MINFER_ASSIGN(auto tokens, tokenize(source));
  return Parser(std::move(tokens)).parse();
}

}  // namespace minfer::jinja
