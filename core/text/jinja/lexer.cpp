// Splits a template into tokens with the whitespace rules of Jinja 3.1: trim_blocks and lstrip_blocks on, `-` and `+` marks,
// one final newline dropped, raw blocks and comments taken out. Knows nothing of statements and expressions.
#include <algorithm>
#include <charconv>

#include "text/jinja/token.hpp"
#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText: return "text";
    case TokenKind::kBlockBegin: return "'{%'";
    case TokenKind::kBlockEnd: return "'%}'";
    case TokenKind::kOutputBegin: return "'{{'";
    case TokenKind::kOutputEnd: return "'}}'";
    case TokenKind::kString: return "a string";
    case TokenKind::kInteger:
    case TokenKind::kFloat: return "a number";
    case TokenKind::kEnd: return "the end of the template";
    default: return "'" + token.text + "'";
  }
}

namespace {

constexpr size_t kMaxSource = 8u << 20;

// Line breaks as \n; one at the very end is dropped.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), s_(source_) {}

  Result<std::vector<Token>> run() {
    while (at_ < s_.size()) MINFER_TRY(next_text());
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  Error error(const Error& e) const { return e.in(text("line {}", line_)); }

  void add(TokenKind kind, std::string value) { tokens_.push_back(Token{kind, line_, std::move(value), 0, 0}); }
  bool here(std::string_view wanted) const { return s_.substr(at_).starts_with(wanted); }

  // Moves on to `to`, counting lines and remembering whether the next text begins a line.
  void advance(size_t to) {
    const std::string_view passed = s_.substr(at_, to - at_);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    if (to > at_) line_starting_ = s_[to - 1] == '\n';
    at_ = to;
  }

  size_t skip_space(size_t from) const { return s_.size() - strip(s_.substr(from), true, false).size(); }

  // The text before a tag, after whitespace control by the tag's mark ('-', '+' or 0).
  std::string_view controlled(std::string_view t, char mark, bool is_output) const {
    if (mark == '-') return strip(t, false, true);
    if (mark == '+' || is_output) return t;
    const size_t newline = t.rfind('\n');
    if (newline == std::string_view::npos && !line_starting_) return t;
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    return strip(t.substr(begin), true, false).empty() ? t.substr(0, begin) : t;
  }

  // End of a block tag's closing "%}" (or "-%}", "+%}") at `from`; nothing when none is there. trim_blocks eats one newline.
  std::optional<size_t> closing(size_t from, std::string_view end, bool trims) const {
    const std::string_view rest = s_.substr(from);
    if (rest.starts_with('-') && rest.substr(1).starts_with(end)) return skip_space(from + 1 + end.size());
    if (trims && rest.starts_with('+') && rest.substr(1).starts_with(end)) return from + 1 + end.size();
    if (!rest.starts_with(end)) return std::nullopt;
    const size_t after = from + end.size();
    return trims && after < s_.size() && s_[after] == '\n' ? after + 1 : after;
  }

  Status next_text() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = s_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= s_.size()) {
        add(TokenKind::kText, std::string(s_.substr(at_)));
        advance(s_.size());
        return {};
      }
      if (s_[tag + 1] == '%' || s_[tag + 1] == '{' || s_[tag + 1] == '#') break;
    }
    const char type = s_[tag + 1];
    size_t inside = tag + 2;
    const char mark = inside < s_.size() && (s_[inside] == '-' || s_[inside] == '+') ? s_[inside++] : '\0';
    const std::string_view before = controlled(s_.substr(at_, tag - at_), mark, type == '{');
    if (!before.empty()) add(TokenKind::kText, std::string(before));
    advance(tag);
    if (type == '#') return comment(inside);
    if (type == '%') {
      if (const auto body = raw_begin(inside)) return raw(*body);
    }
    add(type == '%' ? TokenKind::kBlockBegin : TokenKind::kOutputBegin, "");
    advance(inside);
    return tag_body(type == '%');
  }

  Status comment(size_t from) {
    const size_t end = s_.find("#}", from);
    if (end == std::string_view::npos) return error(invalid("comment '{{#' is never closed with '#}}'"));
    const bool marked = end > from && (s_[end - 1] == '-' || s_[end - 1] == '+');
    advance(*closing(marked ? end - 1 : end, "#}", true));
    return {};
  }

  // Where the body of a raw block begins, if this tag is {% raw %}. Its own end trims nothing unless marked.
  std::optional<size_t> raw_begin(size_t inside) const {
    size_t i = skip_space(inside);
    if (!s_.substr(i).starts_with("raw")) return std::nullopt;
    i = skip_space(i + 3);
    return closing(i, "%}", false);
  }

  Status raw(size_t body) {
    const int begun = line_;
    advance(body);
    for (size_t tag = s_.find("{%", at_); tag != std::string_view::npos; tag = s_.find("{%", tag + 1)) {
      size_t i = tag + 2;
      const char mark = i < s_.size() && (s_[i] == '-' || s_[i] == '+') ? s_[i++] : '\0';
      i = skip_space(i);
      if (!s_.substr(i).starts_with("endraw")) continue;
      const auto end = closing(skip_space(i + 6), "%}", true);
      if (!end) continue;
      const std::string_view inner = controlled(s_.substr(at_, tag - at_), mark, false);
      if (!inner.empty()) add(TokenKind::kText, std::string(inner));
      advance(*end);
      return {};
    }
    return invalid("raw block is never closed with '{{% endraw %}}'").in(text("line {}", begun));
  }

  Status tag_body(bool block) {
    std::string open;  // brackets not yet closed
    while (true) {
      advance(skip_space(at_));
      if (at_ >= s_.size()) return {};  // the parser says what is missing
      if (open.empty()) {
        if (const auto end = block ? closing(at_, "%}", true) : closing(at_, "}}", false)) {
          add(block ? TokenKind::kBlockEnd : TokenKind::kOutputEnd, "");
          advance(*end);
          return {};
        }
      }
      MINFER_TRY(expression_token(open));
    }
  }

  Status expression_token(std::string& open) {
    const char c = s_[at_];
    if (is_digit_char(c)) return number();
    if (c == '"' || c == '\'') return string(c);
    size_t end = at_;
    while (end < s_.size() && name_char(end)) ++end;
    if (end > at_) {
      add(TokenKind::kName, std::string(s_.substr(at_, end - at_)));
      advance(end);
      return {};
    }
    for (const std::string_view op : {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"}) {
      if (!here(op)) continue;
      if (op == "(" || op == "[" || op == "{") open += op == "(" ? ')' : op == "[" ? ']' : '}';
      if (op == ")" || op == "]" || op == "}") {
        if (open.empty()) return error(invalid("unexpected '{}'", op));
        if (open.back() != op[0]) return error(invalid("unexpected '{}', expected '{}'", op, std::string(1, open.back())));
        open.pop_back();
      }
      add(TokenKind::kOperator, std::string(op));
      advance(at_ + op.size());
      return {};
    }
    return error(invalid("unexpected character '{}'", std::string(s_.substr(at_, 1))));
  }

  bool name_char(size_t i) const {
    const auto c = static_cast<unsigned char>(s_[i]);
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
  }

  // Digits from `i`, single underscores between them.
  size_t digits_end(size_t i, bool (*is)(char)) const {
    while (i < s_.size() && (is(s_[i]) || (s_[i] == '_' && i + 1 < s_.size() && is(s_[i + 1])))) ++i;
    return i;
  }

  Status number() {
    const bool after_dot = at_ > 0 && s_[at_ - 1] == '.';
    size_t end = digits_end(at_, is_digit_char);
    const auto digit_at = [&](size_t i) { return i < s_.size() && is_digit_char(s_[i]); };
    size_t float_end = end;
    bool is_float = false;
    if (!after_dot) {
      if (float_end < s_.size() && s_[float_end] == '.' && digit_at(float_end + 1)) {
        float_end = digits_end(float_end + 1, is_digit_char);
        is_float = true;
      }
      if (float_end < s_.size() && (s_[float_end] == 'e' || s_[float_end] == 'E')) {
        const size_t sign = float_end + 1 < s_.size() && (s_[float_end + 1] == '+' || s_[float_end + 1] == '-') ? 1 : 0;
        if (digit_at(float_end + 1 + sign)) {
          float_end = digits_end(float_end + 1 + sign, is_digit_char);
          is_float = true;
        }
      }
    }
    int base = 10;
    size_t begin = at_;
    if (!is_float && s_[at_] == '0') {
      const char b = at_ + 1 < s_.size() ? static_cast<char>(s_[at_ + 1] | 0x20) : '\0';
      base = b == 'x' ? 16 : b == 'o' ? 8 : b == 'b' ? 2 : 10;
      bool (*const is)(char) = base == 16  ? [](char c) { return is_digit_char(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }
                               : base == 8 ? [](char c) { return c >= '0' && c <= '7'; }
                                           : [](char c) { return c == '0' || c == '1'; };
      if (base != 10 && digits_end(at_ + 2, is) > at_ + 2) {
        begin = at_ + 2;
        end = digits_end(begin, is);
      } else {
        base = 10;
        end = digits_end(at_, [](char c) { return c == '0'; });
      }
    }
    if (is_float) end = float_end;
    std::string digits(s_.substr(begin, end - begin));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, digits);
    const char* last = digits.data() + digits.size();
    const auto r = is_float ? std::from_chars(digits.data(), last, tokens_.back().number)
                            : std::from_chars(digits.data(), last, tokens_.back().integer, base);
    if (r.ec != std::errc()) return error(unsupported("number {} does not fit 64 bits", digits));
    advance(end);
    return {};
  }

  Status string(char quote) {
    size_t end = at_ + 1;
    while (end < s_.size() && s_[end] != quote) end += s_[end] == '\\' ? 2 : 1;
    if (end >= s_.size()) return error(invalid("string is never closed with {}", std::string(1, quote)));
    auto value = unescaped(s_.substr(at_ + 1, end - at_ - 1));
    if (!value.ok()) return error(value.error());
    add(TokenKind::kString, *std::move(value));
    advance(end + 1);
    return {};
  }

  // Python's escapes of a string literal; an unknown one stays as it is.
  static Result<std::string> unescaped(std::string_view raw) {
    std::string out;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        out += raw[i];
        continue;
      }
      const char c = raw[++i];
      constexpr std::string_view kFrom = "\\'\"abfnrtv";
      constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
      if (const size_t k = kFrom.find(c); k != std::string_view::npos) {
        out += kTo[k];
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        uint32_t code = 0;
        size_t n = 0;
        for (; n < 3 && i + n < raw.size() && raw[i + n] >= '0' && raw[i + n] <= '7'; ++n) {
          code = code * 8 + static_cast<uint32_t>(raw[i + n] - '0');
        }
        append_utf8(out, code);
        i += n - 1;
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        uint32_t code = 0;
        const std::string_view hex = raw.substr(i + 1, n);
        const auto r = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
        if (hex.size() < n || r.ptr != hex.data() + n || r.ec != std::errc()) {
          return invalid("truncated \\{} escape in a string", std::string(1, c));
        }
        if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return invalid("escape \\{}{} is no character", std::string(1, c), hex);
        append_utf8(out, code);
        i += n;
      } else if (c == 'N') {
        return unsupported("\\N escapes in strings are not supported");
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  std::string source_;
  std::string_view s_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (source.size() > kMaxSource) return invalid("line 1: the template has more than {} bytes", kMaxSource);
  return Lexer(normalized(source)).run();
}

}  // namespace minfer::jinja
