// Python's arithmetic over template values: floor division and modulo, exact integers (overflow of 64 bits is an error),
// repetition and concatenation of strings and lists.
#include <cmath>

#include "text/jinja/format.hpp"
#include "text/jinja/operators.hpp"

namespace minfer::jinja {

std::string_view symbol(BinaryOp op) {
  constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<size_t>(op)];
}

std::string escape_html(std::string_view s) {
  std::string out;
  for (const char c : s) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return out;
}

namespace {

Error overflow() { return invalid("integer result does not fit 64 bits"); }

Error unsupported_operands(BinaryOp op, const Value& a, const Value& b) {
  if (op == BinaryOp::kAdd && a.is_string()) return invalid("can only concatenate str (not \"{}\") to str", type_name(b));
  return invalid("unsupported operand types for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

Result<Value> int_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return invalid("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow();
  }
  return Value(result);
}

Result<Value> int_op(BinaryOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(a, b, &r)) return overflow();
      return Value(r);
    case BinaryOp::kSub:
      if (__builtin_sub_overflow(a, b, &r)) return overflow();
      return Value(r);
    case BinaryOp::kMul:
      if (__builtin_mul_overflow(a, b, &r)) return overflow();
      return Value(r);
    case BinaryOp::kDiv:
      if (b == 0) return invalid("division by zero");
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod: {
      if (b == 0) return invalid("integer division or modulo by zero");
      if (b == -1) {  // INT64_MIN / -1 would trap
        if (op == BinaryOp::kMod) return Value(int64_t{0});
        if (__builtin_sub_overflow(int64_t{0}, a, &r)) return overflow();
        return Value(r);
      }
      int64_t quotient = a / b;
      int64_t rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        --quotient;
      }
      return Value(op == BinaryOp::kMod ? rest : quotient);
    }
    case BinaryOp::kPow: return int_power(a, b);
  }
  return internal_error("operator");
}

Result<Value> float_op(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd: return Value(a + b);
    case BinaryOp::kSub: return Value(a - b);
    case BinaryOp::kMul: return Value(a * b);
    case BinaryOp::kDiv:
      if (b == 0) return invalid("float division by zero");
      return Value(a / b);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMod: {
      if (b == 0) return invalid("float modulo or floor division by zero");
      double rest = std::fmod(a, b);
      double quotient = (a - rest) / b;
      if (rest != 0) {
        if ((b < 0) != (rest < 0)) {
          rest += b;
          quotient -= 1;
        }
      } else {
        rest = std::copysign(0.0, b);
      }
      if (op == BinaryOp::kMod) return Value(rest);
      if (quotient == 0) return Value(std::copysign(0.0, a / b));
      double floored = std::floor(quotient);
      if (quotient - floored > 0.5) floored += 1;
      return Value(floored);
    }
    case BinaryOp::kPow: {
      if (a == 0 && b < 0) return invalid("0.0 cannot be raised to a negative power");
      const double r = std::pow(a, b);
      if (std::isnan(r) && !std::isnan(a) && !std::isnan(b)) return invalid("a negative number to a fractional power is complex");
      if (std::isinf(r) && std::isfinite(a) && std::isfinite(b)) return invalid("float result out of range");
      return Value(r);
    }
  }
  return internal_error("operator");
}

bool plain_sequence(const List* list) { return list && (list->kind == List::Kind::kList || list->kind == List::Kind::kTuple); }

Result<Value> repeat(Runtime& rt, const Value& sequence, int64_t times) {
  const uint64_t count = times > 0 ? static_cast<uint64_t>(times) : 0;
  if (sequence.is_string()) {
    const std::string& unit = sequence.string();
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(unit.size(), count, &bytes)) bytes = UINT64_MAX;
    MINFER_TRY(rt.charge_bytes(bytes));
    std::string out;
    out.reserve(bytes);
    for (uint64_t i = 0; i < count && !unit.empty(); ++i) out += unit;
    return sequence.like(std::move(out));
  }
  const List& list = *sequence.list();
  uint64_t total = 0;
  if (__builtin_mul_overflow(list.items.size(), count, &total)) total = rt.limits().max_steps + 1;
  MINFER_TRY(rt.charge(std::min(total, rt.limits().max_steps + 1)));
  std::vector<Value> out;
  for (uint64_t i = 0; i < count && !list.items.empty(); ++i) out.insert(out.end(), list.items.begin(), list.items.end());
  return make_view(std::move(out), list.kind);
}

Result<Value> add_sequences(Runtime& rt, const Value& a, const Value& b) {
  if (a.is_string()) {
    MINFER_TRY(rt.charge_bytes(a.string().size() + b.string().size()));
    if (a.is_markup() || b.is_markup()) {
      return Value::markup((a.is_markup() ? a.string() : escape_html(a.string())) + (b.is_markup() ? b.string() : escape_html(b.string())));
    }
    return Value(a.string() + b.string());
  }
  MINFER_TRY(rt.charge(a.list()->items.size() + b.list()->items.size()));
  std::vector<Value> out = a.list()->items;
  out.insert(out.end(), b.list()->items.begin(), b.list()->items.end());
  return make_view(std::move(out), a.list()->kind);
}

}  // namespace

Result<Value> binary(Runtime& rt, BinaryOp op, const Value& a, const Value& b) {
  if (a.is_undefined()) return invalid("{}", a.undefined_message());
  if (op == BinaryOp::kMod && a.is_string()) return format_percent(rt, a.string(), b);
  if (b.is_undefined()) return invalid("{}", b.undefined_message());
  const auto ai = a.as_int();
  const auto bi = b.as_int();
  if (ai && bi) return int_op(op, *ai, *bi);
  const auto ad = a.as_double();
  const auto bd = b.as_double();
  if (ad && bd) return float_op(op, *ad, *bd);
  if (op == BinaryOp::kAdd) {
    if (a.is_string() && b.is_string()) return add_sequences(rt, a, b);
    if (plain_sequence(a.list()) && plain_sequence(b.list()) && a.list()->kind == b.list()->kind) return add_sequences(rt, a, b);
  }
  if (op == BinaryOp::kMul) {
    if (bi && (a.is_string() || plain_sequence(a.list()))) return repeat(rt, a, *bi);
    if (ai && (b.is_string() || plain_sequence(b.list()))) return repeat(rt, b, *ai);
  }
  return unsupported_operands(op, a, b);
}

Result<Value> negate(const Value& a) {
  if (a.is_undefined()) return invalid("{}", a.undefined_message());
  if (const auto i = a.as_int()) {
    int64_t r = 0;
    if (__builtin_sub_overflow(int64_t{0}, *i, &r)) return overflow();
    return Value(r);
  }
  if (a.is_float()) return Value(-*a.as_double());
  return invalid("bad operand type for unary -: '{}'", type_name(a));
}

Result<Value> positive(const Value& a) {
  if (a.is_undefined()) return invalid("{}", a.undefined_message());
  if (const auto i = a.as_int()) return Value(*i);
  if (a.is_float()) return a;
  return invalid("bad operand type for unary +: '{}'", type_name(a));
}

}  // namespace minfer::jinja
