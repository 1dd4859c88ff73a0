// Filters over numbers, and default.
#include <charconv>
#include <cmath>

#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

namespace {

// float(text) of Python, where it accepts the text.
std::optional<double> parse_float(std::string_view s) {
  std::string digits;
  const std::string_view trimmed = strip(s, true, true);
  for (size_t i = 0; i < trimmed.size(); ++i) {
    if (trimmed[i] != '_') {
      digits += trimmed[i];
      continue;
    }
    const auto digit_at = [&](size_t k) { return k < trimmed.size() && trimmed[k] >= '0' && trimmed[k] <= '9'; };
    if (i == 0 || !digit_at(i - 1) || !digit_at(i + 1)) return std::nullopt;
  }
  std::string_view body = digits;
  const bool negative = body.starts_with('-');
  if (negative || body.starts_with('+')) body.remove_prefix(1);
  const std::string word = lower(body);
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = HUGE_VAL;
  } else if (word == "nan") {
    value = std::nan("");
  } else {
    if (body.empty() || !(body[0] == '.' || (body[0] >= '0' && body[0] <= '9')) || word.find('x') != std::string::npos) return std::nullopt;
    const auto r = std::from_chars(body.data(), body.data() + body.size(), value);
    if (r.ptr != body.data() + body.size()) return std::nullopt;
    if (r.ec == std::errc::result_out_of_range) {
      const size_t e = word.find('e');
      value = e != std::string::npos && word.find('-', e) != std::string::npos ? 0.0 : HUGE_VAL;
    }
  }
  return negative ? -value : value;
}

// int(text, base) of Python. An integer beyond 64 bits is an error, not a default.
Result<std::optional<int64_t>> parse_int(std::string_view s, int64_t base) {
  const std::optional<int64_t> none;
  std::string_view body = strip(s, true, true);
  const bool negative = body.starts_with('-');
  if (negative || body.starts_with('+')) body.remove_prefix(1);
  const auto prefix_base = [&]() -> int64_t {
    if (body.size() < 2 || body[0] != '0') return 0;
    const char c = static_cast<char>(body[1] | 0x20);
    return c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
  }();
  bool underscore_allowed = false;
  if (prefix_base != 0 && (base == 0 || base == prefix_base)) {
    base = prefix_base;
    body.remove_prefix(2);
    underscore_allowed = true;
  } else if (base == 0) {
    base = 10;
    if (body.size() > 1 && body[0] == '0' && body.find_first_not_of("0_") != std::string_view::npos) return none;
  }
  if (base < 2 || base > 36) return none;
  std::string digits;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '_') {
      if ((i == 0 && !underscore_allowed) || i + 1 >= body.size() || (i > 0 && body[i - 1] == '_')) return none;
    } else {
      digits += body[i];
    }
  }
  if (digits.empty() || digits[0] == '-') return none;
  if (negative) digits.insert(digits.begin(), '-');
  int64_t value = 0;
  const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (r.ptr != digits.data() + digits.size()) return none;
  if (r.ec == std::errc::result_out_of_range) return invalid("integer {} does not fit 64 bits", std::string_view(digits).substr(0, 40));
  return std::optional<int64_t>(value);
}

std::optional<int64_t> truncated(double d) {
  if (!(d > -9.2233720368547758e18 && d < 9.2233720368547758e18)) return std::nullopt;
  return static_cast<int64_t>(d);
}

Result<Value> to_int(Runtime&, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "int", {"default", "base"}));
  MINFER_ASSIGN(const int64_t base, int_or(p[1], 10, "base"));
  const Value fallback = p[0].value_or(Value(0));
  if (input.is_undefined()) return invalid("{}", input.undefined_message());
  auto d = input.as_double();
  if (const auto i = input.as_int()) return Value(*i);
  if (input.is_string()) {
    MINFER_ASSIGN(const auto i, parse_int(input.string(), base));
    if (i) return Value(*i);
    d = parse_float(input.string());
  }
  if (!d.has_value() || !std::isfinite(d.value_or(0))) return fallback;
  const auto i = truncated(d.value_or(0));
  if (!i) return invalid("integer result does not fit 64 bits");
  return Value(*i);
}

Result<Value> to_float(Runtime&, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "float", {"default"}));
  if (input.is_undefined()) return invalid("{}", input.undefined_message());
  const auto d = input.is_string() ? parse_float(input.string()) : input.as_double();
  return d ? Value(*d) : p[0].value_or(Value(0.0));
}

Result<Value> absolute(Runtime&, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "abs", {}));
  if (const auto i = input.as_int()) return *i < 0 ? negate(input) : Result<Value>(Value(*i));
  if (input.is_float()) return Value(std::fabs(*input.as_double()));
  return invalid("bad operand type for abs(): '{}'", type_name(input));
}

// round(value, precision) of Python: correctly rounded in decimal, ties of the exact value to even.
double round_decimal(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 323) return value;
  if (precision < -308) return std::copysign(0.0, value);
  char buffer[800];
  if (precision >= 0) {
    const auto r = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, static_cast<int>(precision));
    double out = value;
    std::from_chars(buffer, r.ptr, out);
    return out;
  }
  const double unit = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / unit) * unit;
}

Result<Value> round_number(Runtime&, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "round", {"precision", "method"}));
  MINFER_ASSIGN(const int64_t precision, int_or(p[0], 0, "precision"));
  MINFER_ASSIGN(const std::string method, string_or(p[1], "common", "method"));
  if (input.is_undefined()) return invalid("{}", input.undefined_message());
  const auto d = input.as_double();
  if (!d) return invalid("type {} cannot be rounded", type_name(input));
  if (method == "common") {
    if (!input.is_float() && precision >= 0) return Value(*input.as_int());
    const double rounded = round_decimal(*d, precision);
    if (input.is_float()) return Value(rounded);
    return Value(truncated(rounded).value_or(0));
  }
  if (method != "ceil" && method != "floor") return invalid("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *d * scale;
  const auto whole = truncated(method == "ceil" ? std::ceil(scaled) : std::floor(scaled));
  if (!whole) return invalid("number too large to round");
  return Value(static_cast<double>(*whole) / scale);
}

Result<Value> default_value(Runtime&, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "default", {"default_value", "boolean"}));
  const bool missing = input.is_undefined() || (bool_or(p[1], false) && !truthy(input));
  return missing ? p[0].value_or(Value("")) : input;
}

constexpr FilterEntry kFilters[] = {
    {"int", to_int}, {"float", to_float}, {"abs", absolute}, {"round", round_number}, {"default", default_value}, {"d", default_value},
};

}  // namespace

Filter find_number_filter(std::string_view name) { return find_in(kFilters, name); }

}  // namespace minfer::jinja
