// Python's text formatting: str.format() and the % operator, over one description of a field.
#include "text/jinja/format.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/attributes.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

namespace {

constexpr int64_t kMaxWidth = 10'000;

struct Spec {
  std::string fill = " ";
  char align = 0;  // '<' '>' '^' '='
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  char group = 0;  // ',' or '_'
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

// Reads digits at `at`; -1 when there are none.
Result<int64_t> read_number(std::string_view s, size_t& at) {
  if (at >= s.size() || s[at] < '0' || s[at] > '9') return int64_t{-1};
  int64_t n = 0;
  while (at < s.size() && s[at] >= '0' && s[at] <= '9') {
    n = n * 10 + (s[at++] - '0');
    if (n > kMaxWidth) return invalid("a width or precision in a format is above {}", kMaxWidth);
  }
  return n;
}

Result<Spec> parse_spec(std::string_view s) {
  Spec spec;
  const std::u32string chars = code_points(s.substr(0, 8));
  const auto is_align = [](char32_t c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  size_t at = 0;
  if (chars.size() > 1 && is_align(chars[1])) {
    spec.fill.clear();
    append_utf8(spec.fill, chars[0]);
    spec.align = static_cast<char>(chars[1]);
    at = spec.fill.size() + 1;
  } else if (!chars.empty() && is_align(chars[0])) {
    spec.align = static_cast<char>(chars[0]);
    at = 1;
  }
  if (at < s.size() && (s[at] == '+' || s[at] == '-' || s[at] == ' ')) spec.sign = s[at++];
  if (at < s.size() && s[at] == '#') {
    spec.alternate = true;
    ++at;
  }
  if (at < s.size() && s[at] == '0') {
    spec.zero = true;
    ++at;
  }
  MINFER_ASSIGN(const int64_t width, read_number(s, at));
  spec.width = std::max<int64_t>(width, 0);
  if (at < s.size() && (s[at] == ',' || s[at] == '_')) spec.group = s[at++];
  if (at < s.size() && s[at] == '.') {
    ++at;
    MINFER_ASSIGN(spec.precision, read_number(s, at));
    if (spec.precision < 0) return invalid("format specifier '{}' lacks its precision", s);
  }
  if (at < s.size()) spec.type = s[at++];
  if (at != s.size()) return invalid("invalid format specifier '{}'", s);
  return spec;
}

// `digits` (after a sign or prefix of `head` bytes) brought to the field's width.
std::string pad(const Spec& spec, std::string body, size_t head, char default_align) {
  const auto length = static_cast<int64_t>(char_count(body));
  if (length >= spec.width) return body;
  const auto missing = static_cast<size_t>(spec.width - length);
  const bool zeros = spec.zero && spec.align == 0;
  const char align = zeros ? '=' : spec.align ? spec.align : default_align;
  const std::string& unit = zeros ? std::string("0") : spec.fill;
  const auto run = [&unit](size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += unit;
    return out;
  };
  switch (align) {
    case '>': return run(missing) + body;
    case '^': return run(missing / 2) + body + run(missing - missing / 2);
    case '=': return body.substr(0, head) + run(missing) + body.substr(head);
    default: return body + run(missing);
  }
}

std::string grouped(std::string digits, char group) {
  const size_t point = std::min(digits.find('.'), digits.find('e'));
  for (size_t i = std::min(point, digits.size()); i > 3;) digits.insert(i -= 3, 1, group);
  return digits;
}

std::string unsigned_digits(uint64_t n, int base, bool capitals) {
  char buffer[72];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, n, base).ptr;
  std::string out(buffer, static_cast<size_t>(end - buffer));
  return capitals ? upper(out) : out;
}

Result<std::string> float_digits(double value, char type, int64_t precision) {
  const double magnitude = std::fabs(value);
  if (!std::isfinite(magnitude)) return std::string(std::isnan(magnitude) ? "nan" : "inf");
  const int places = precision < 0 ? 6 : static_cast<int>(std::min<int64_t>(precision, 1100));
  std::string buffer(static_cast<size_t>(places) + 400, '\0');
  const char* begin = buffer.data();
  std::to_chars_result r{};
  if (type == 'f' || type == 'F' || type == '%') {
    r = std::to_chars(buffer.data(), buffer.data() + buffer.size(), type == '%' ? magnitude * 100 : magnitude, std::chars_format::fixed,
                      places);
  } else if (type == 'e' || type == 'E') {
    r = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, std::chars_format::scientific, places);
  } else if (type == 0 && precision < 0) {
    return float_repr(magnitude);
  } else {
    r = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, std::chars_format::general, std::max(places, 1));
  }
  if (r.ec != std::errc()) return invalid("a float does not fit its format");
  std::string out(begin, static_cast<size_t>(r.ptr - begin));
  if (type == 'E' || type == 'G' || type == 'F') out = upper(out);
  if (type == '%') out += '%';
  return out;
}

std::string sign_of(bool negative, char sign) {
  if (negative) return "-";
  if (sign == '+') return "+";
  return sign == ' ' ? " " : "";
}

Result<std::string> format_field(Runtime& rt, const Value& value, const Spec& spec) {
  const std::string_view int_types = "bcdoxXn";
  const bool int_type = spec.type != 0 && int_types.find(spec.type) != std::string_view::npos;
  if (value.is_number() && (value.is_int() || int_type || (value.is_bool() && spec.type != 0 && spec.type != 's'))) {
    if (!value.is_float() && (spec.type == 0 || int_type)) {
      const int64_t n = *value.as_int();
      const uint64_t magnitude = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
      std::string head = sign_of(n < 0, spec.sign);
      std::string digits;
      switch (spec.type) {
        case 'x':
        case 'X': digits = unsigned_digits(magnitude, 16, spec.type == 'X'); break;
        case 'o': digits = unsigned_digits(magnitude, 8, false); break;
        case 'b': digits = unsigned_digits(magnitude, 2, false); break;
        case 'c': return unsupported("format type 'c' is not supported");
        default: digits = unsigned_digits(magnitude, 10, false);
      }
      if (spec.alternate && spec.type != 0 && spec.type != 'd') head += std::string("0") + spec.type;
      if (spec.group) digits = grouped(std::move(digits), spec.group);
      const size_t head_size = head.size();
      return pad(spec, head + digits, head_size, '>');
    }
  }
  const std::string_view float_types = "eEfFgG%";
  const bool float_type = spec.type != 0 && float_types.find(spec.type) != std::string_view::npos;
  if (value.is_number() && (float_type || (value.is_float() && spec.type == 0))) {
    const double d = *value.as_double();
    MINFER_ASSIGN(std::string digits, float_digits(d, spec.type, spec.precision));
    if (spec.group) digits = grouped(std::move(digits), spec.group);
    const std::string head = sign_of(std::signbit(d), spec.sign);
    return pad(spec, head + digits, head.size(), '>');
  }
  if (spec.type != 0 && spec.type != 's') return invalid("format type '{}' does not fit a {}", std::string(1, spec.type), type_name(value));
  MINFER_ASSIGN(std::string body, to_str(rt, value));
  if (spec.precision >= 0) body = to_utf8(code_points(body).substr(0, static_cast<size_t>(spec.precision)));
  return pad(spec, std::move(body), 0, '<');
}

// "name.attr[0]" of a replacement field.
Result<Value> resolve_field(Runtime& rt, std::string_view field, const Args& args, size_t& next) {
  const size_t end = std::min(field.find_first_of(".["), field.size());
  const std::string_view first = field.substr(0, end);
  Value value;
  size_t at = 0;
  size_t index = next;
  bool numeric = first.empty();
  if (!first.empty()) {
    MINFER_ASSIGN(const int64_t n, read_number(first, at));
    numeric = n >= 0 && at == first.size();
    if (numeric) index = static_cast<size_t>(n);
  } else {
    ++next;
  }
  if (numeric) {
    if (index >= args.positional.size()) return invalid("format() has no argument {}", index);
    value = args.positional[index];
  } else {
    const auto it = std::find_if(args.keyword.begin(), args.keyword.end(), [&](const auto& k) { return k.first == first; });
    if (it == args.keyword.end()) return invalid("format() has no argument '{}'", first);
    value = it->second;
  }
  for (size_t i = end; i < field.size();) {
    if (field[i] == '.') {
      const size_t stop = std::min(field.find_first_of(".[", i + 1), field.size());
      MINFER_ASSIGN(value, get_attribute(rt, value, field.substr(i + 1, stop - i - 1)));
      i = stop;
    } else {
      const size_t close = field.find(']', i);
      if (field[i] != '[' || close == std::string_view::npos) return invalid("bad field '{}' in a format string", field);
      const std::string_view key = field.substr(i + 1, close - i - 1);
      size_t p = 0;
      MINFER_ASSIGN(const int64_t n, read_number(key, p));
      MINFER_ASSIGN(value, get_item(rt, value, n >= 0 && p == key.size() ? Value(n) : Value(key)));
      i = close + 1;
    }
  }
  return value;
}

}  // namespace

Result<Value> format_braces(Runtime& rt, std::string_view pattern, const Args& args) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if ((c == '{' || c == '}') && i + 1 < pattern.size() && pattern[i + 1] == c) {
      out += c;
      ++i;
      continue;
    }
    if (c == '}') return invalid("single '}}' encountered in format string");
    if (c != '{') {
      out += c;
      continue;
    }
    const size_t close = pattern.find('}', i);
    if (close == std::string_view::npos) return invalid("'{{' without '}}' in format string");
    std::string_view field = pattern.substr(i + 1, close - i - 1);
    if (field.find('{') != std::string_view::npos) return unsupported("a field inside a format specifier is not supported");
    std::string_view spec_text;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec_text = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    if (field.size() >= 2 && field[field.size() - 2] == '!') {
      conversion = field.back();
      field.remove_suffix(2);
    }
    MINFER_ASSIGN(Value value, resolve_field(rt, field, args, next));
    if (conversion == 'r') {
      MINFER_ASSIGN(value, repr(rt, value));
    } else if (conversion == 's') {
      MINFER_ASSIGN(value, to_str(rt, value));
    } else if (conversion != 0) {
      return invalid("unknown conversion '!{}' in a format string", std::string(1, conversion));
    }
    if (!spec_text.empty() && value.is_bool()) value = Value(*value.as_int());
    if (!spec_text.empty() && !value.is_number() && !value.is_string())
      return invalid("unsupported format string passed to {}.__format__", type_name(value));
    MINFER_ASSIGN(const Spec spec, parse_spec(spec_text));
    MINFER_ASSIGN(const std::string piece, format_field(rt, value, spec));
    out += piece;
    MINFER_TRY(rt.charge(1));
    i = close;
  }
  MINFER_TRY(rt.charge_bytes(out.size()));
  return Value(std::move(out));
}

Result<Value> format_percent(Runtime& rt, std::string_view pattern, const Value& values) {
  const List* tuple = values.list() && values.list()->kind == List::Kind::kTuple ? values.list() : nullptr;
  size_t next = 0;
  const size_t count = tuple ? tuple->items.size() : 1;
  bool named = false;
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    if (++i >= pattern.size()) return invalid("incomplete format");
    if (pattern[i] == '%') {
      out += '%';
      continue;
    }
    Spec spec;
    spec.align = '>';
    std::optional<Value> value;
    if (pattern[i] == '(') {
      const size_t close = pattern.find(')', i);
      if (close == std::string_view::npos) return invalid("incomplete format key");
      if (!values.is_dict()) return invalid("format requires a mapping");
      const std::string_view key = pattern.substr(i + 1, close - i - 1);
      const Value* found = values.dict().find(key);
      if (!found) return invalid("format has no key '{}'", key);
      value = *found;
      named = true;
      i = close + 1;
    }
    for (; i < pattern.size() && std::string_view("-+ #0").find(pattern[i]) != std::string_view::npos; ++i) {
      if (pattern[i] == '-') spec.align = '<';
      if (pattern[i] == '+' || (pattern[i] == ' ' && spec.sign != '+')) spec.sign = pattern[i];
      if (pattern[i] == '#') spec.alternate = true;
      if (pattern[i] == '0') spec.zero = true;
    }
    MINFER_ASSIGN(const int64_t width, read_number(pattern, i));
    spec.width = std::max<int64_t>(width, 0);
    if (i < pattern.size() && pattern[i] == '.') {
      ++i;
      MINFER_ASSIGN(const int64_t precision, read_number(pattern, i));
      spec.precision = std::max<int64_t>(precision, 0);
    }
    if (i >= pattern.size()) return invalid("incomplete format");
    if (!value) {
      if (next >= count) return invalid("not enough arguments for format string");
      value = tuple ? tuple->items[next] : values;
      ++next;
    }
    spec.type = pattern[i];
    Value shown = *value;
    if (spec.type == 'r') {
      MINFER_ASSIGN(shown, repr(rt, *value));
    } else if (spec.type == 's') {
      MINFER_ASSIGN(shown, to_str(rt, *value));
    } else if (spec.type == 'd' || spec.type == 'i' || spec.type == 'u') {
      if (!value->is_number()) return invalid("%{} format: a number is required, not {}", std::string(1, spec.type), type_name(*value));
      if (value->is_float()) shown = Value(static_cast<int64_t>(std::trunc(std::clamp(*value->as_double(), -9.2e18, 9.2e18))));
      spec.type = 'd';
    } else if (std::string_view("xXoeEfFgG").find(spec.type) == std::string_view::npos) {
      return invalid("unsupported format character '{}'", std::string(1, spec.type));
    } else if (!value->is_number()) {
      return invalid("%{} format: a number is required, not {}", std::string(1, spec.type), type_name(*value));
    }
    if (spec.type == 'r') spec.type = 's';
    if (spec.zero && spec.type != 's' && spec.align == '>') {
      spec.align = 0;
    } else {
      spec.zero = false;
    }
    MINFER_ASSIGN(const std::string piece, format_field(rt, shown, spec));
    out += piece;
    MINFER_TRY(rt.charge(1));
  }
  // What Python takes for a mapping may be left over: all that can be indexed, but tuples and strings.
  const bool mapping = values.is_dict() || values.is_undefined() || (values.list() && values.list()->kind == List::Kind::kList) ||
                       (values.list() && values.list()->kind == List::Kind::kRange);
  if (!named && next < count && !mapping) return invalid("not all arguments converted during string formatting");
  MINFER_TRY(rt.charge_bytes(out.size()));
  return Value(std::move(out));
}

}  // namespace minfer::jinja
