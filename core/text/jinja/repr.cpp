// Values as text, as Python's str() and repr() write them.
#include "text/jinja/repr.hpp"

#include <charconv>
#include <cmath>

#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view s(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (s.front() == '-') {
    out = "-";
    s.remove_prefix(1);
  }
  const size_t e = s.find('e');
  std::string digits(1, s[0]);
  if (e > 2) digits += s.substr(2, e - 2);
  int exponent = 0;
  std::string_view exponent_text = s.substr(e + 1);
  if (exponent_text.front() == '+') exponent_text.remove_prefix(1);
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out.append(".").append(digits, 1);
    const int magnitude = std::abs(exponent);
    out += exponent < 0 ? "e-" : "e+";
    return out + (magnitude < 10 ? "0" : "") + std::to_string(magnitude);
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." + digits.substr(static_cast<size_t>(exponent) + 1);
}

std::string quoted(std::string_view s) {
  const char quote = s.find('\'') != std::string_view::npos && s.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char32_t c : code_points(s)) {
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      append_utf8(out, c);
    } else if (c < 0x100) {
      out += text("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += text("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += text("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  return out + quote;
}

namespace {

Status append_repr(Runtime& rt, const Value& value, std::string& out);

Status append_items(Runtime& rt, const std::vector<Value>& items, std::string& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    MINFER_TRY(append_repr(rt, items[i], out));
  }
  return {};
}

Status append_list(Runtime& rt, const List& list, std::string& out) {
  switch (list.kind) {
    case List::Kind::kRange: out += list.label; return {};
    case List::Kind::kIterator: out += "<generator object>"; return {};
    case List::Kind::kTuple:
      out += '(';
      MINFER_TRY(append_items(rt, list.items, out));
      out += list.items.size() == 1 ? ",)" : ")";
      return {};
    case List::Kind::kKeys: out += "dict_keys("; break;
    case List::Kind::kValues: out += "dict_values("; break;
    case List::Kind::kItems: out += "dict_items("; break;
    case List::Kind::kList: break;
  }
  out += '[';
  MINFER_TRY(append_items(rt, list.items, out));
  out += list.kind == List::Kind::kList ? "]" : "])";
  return {};
}

Status append_dict(Runtime& rt, const Dict& dict, std::string& out) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out += ", ";
    first = false;
    MINFER_TRY(append_repr(rt, key, out));
    out += ": ";
    MINFER_TRY(append_repr(rt, value, out));
  }
  out += '}';
  return {};
}

Status append_repr(Runtime& rt, const Value& value, std::string& out) {
  const DepthGuard guard(rt);
  MINFER_TRY(guard.status());
  MINFER_TRY(rt.charge(1));
  if (out.size() > rt.limits().max_output_bytes) MINFER_TRY(rt.charge_bytes(out.size()));
  if (value.is_string()) {
    out += value.is_markup() ? "Markup(" + quoted(value.string()) + ")" : quoted(value.string());
  } else if (value.is_none()) {
    out += "None";
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_bool()) {
    out += truthy(value) ? "True" : "False";
  } else if (value.is_int()) {
    out += std::to_string(*value.as_int());
  } else if (value.is_float()) {
    out += float_repr(*value.as_double());
  } else if (const List* list = value.list()) {
    return append_list(rt, *list, out);
  } else if (value.is_dict()) {
    return append_dict(rt, value.dict(), out);
  } else if (const Namespace* ns = value.ns()) {
    out += "<Namespace {";
    for (size_t i = 0; i < ns->attributes.size(); ++i) {
      out += (i > 0 ? ", " : "") + quoted(ns->attributes[i].first) + ": ";
      MINFER_TRY(append_repr(rt, ns->attributes[i].second, out));
    }
    out += "}>";
  } else if (const Loop* loop = value.loop()) {
    out += text("<LoopContext {}/{}>", loop->index0 + 1, loop->items.size());
  } else {
    out += "<function " + value.callable()->name + ">";
  }
  return {};
}

}  // namespace

Result<std::string> repr(Runtime& rt, const Value& value) {
  std::string out;
  MINFER_TRY(append_repr(rt, value, out));
  MINFER_TRY(rt.charge_bytes(out.size()));
  return out;
}

Result<std::string> to_str(Runtime& rt, const Value& value) {
  if (value.is_string()) return value.string();
  if (value.is_undefined()) return std::string();
  return repr(rt, value);
}

}  // namespace minfer::jinja
