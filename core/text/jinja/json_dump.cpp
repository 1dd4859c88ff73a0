// Values as JSON text, byte for byte as Python's json.dumps writes them.
#include "text/jinja/json_dump.hpp"

#include <algorithm>
#include <cmath>

#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

namespace {

void append_unit(std::string& out, uint32_t unit) { out += text("\\u{:04x}", unit); }

void append_string(std::string& out, std::string_view s, bool ensure_ascii) {
  out += '"';
  const bool code_point_wise = ensure_ascii && !is_ascii(s);
  const auto append_char = [&](char32_t c) {
    switch (c) {
      case '"': out += "\\\""; return;
      case '\\': out += "\\\\"; return;
      case '\n': out += "\\n"; return;
      case '\r': out += "\\r"; return;
      case '\t': out += "\\t"; return;
      case '\f': out += "\\f"; return;
      case '\b': out += "\\b"; return;
      default: break;
    }
    if (c < 0x20 || (ensure_ascii && c == 0x7F)) {
      append_unit(out, c);
    } else if (!ensure_ascii || c < 0x7F) {
      out += static_cast<char>(c);
    } else if (c < 0x10000) {
      append_unit(out, c);
    } else {
      append_unit(out, 0xD800 + ((c - 0x10000) >> 10));
      append_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
    }
  };
  if (code_point_wise) {
    for (const char32_t c : code_points(s)) append_char(c);
  } else {
    for (const char c : s) append_char(static_cast<unsigned char>(c));
  }
  out += '"';
}

std::string json_float(double d) {
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
  return float_repr(d);
}

class Dumper {
 public:
  Dumper(Runtime& rt, const JsonStyle& style) : rt_(rt), style_(style) {}

  Status append(const Value& value) {
    const DepthGuard guard(rt_);
    MINFER_TRY(guard.status());
    MINFER_TRY(rt_.charge(1));
    if (out_.size() > rt_.limits().max_output_bytes) return rt_.charge_bytes(out_.size());
    if (value.is_string()) {
      append_string(out_, value.string(), style_.ensure_ascii);
    } else if (value.is_none()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += truthy(value) ? "true" : "false";
    } else if (value.is_int()) {
      out_ += std::to_string(*value.as_int());
    } else if (value.is_float()) {
      out_ += json_float(*value.as_double());
    } else if (value.is_dict()) {
      return append_dict(value.dict());
    } else if (const List* list = value.list(); list && list->kind <= List::Kind::kTuple) {
      return append_list(*list);
    } else {
      return invalid("object of type {} is not JSON serializable", type_name(value));
    }
    return {};
  }

  std::string take() { return std::move(out_); }

 private:
  void line_break() {
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  Status append_list(const List& list) {
    if (list.items.empty()) {
      out_ += "[]";
      return {};
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      line_break();
      MINFER_TRY(append(list.items[i]));
    }
    --level_;
    line_break();
    out_ += ']';
    return {};
  }

  Result<std::string> key_text(const Value& key) const {
    if (key.is_string()) return key.string();
    if (key.is_none()) return std::string("null");
    if (key.is_bool()) return std::string(truthy(key) ? "true" : "false");
    if (key.is_int()) return std::to_string(*key.as_int());
    if (key.is_float()) return json_float(*key.as_double());
    return invalid("keys must be str, int, float, bool or None, not {}", type_name(key));
  }

  Status append_dict(const Dict& dict) {
    if (dict.size() == 0) {
      out_ += "{}";
      return {};
    }
    auto entries = dict.entries();
    if (style_.sort_keys) {
      Status failed;
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        const auto smaller = less(rt_, a.first, b.first);
        if (!smaller.ok()) failed = smaller.error();
        return smaller.ok() && *smaller;
      });
      if (!failed.ok()) return failed.error();
    }
    out_ += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      line_break();
      MINFER_ASSIGN(const std::string key, key_text(entries[i].first));
      append_string(out_, key, style_.ensure_ascii);
      out_ += style_.key_separator;
      MINFER_TRY(append(entries[i].second));
    }
    --level_;
    line_break();
    out_ += '}';
    return {};
  }

  Runtime& rt_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

Result<std::string> dump_json(Runtime& rt, const Value& value, const JsonStyle& style) {
  Dumper dumper(rt, style);
  MINFER_TRY(dumper.append(value));
  std::string out = dumper.take();
  MINFER_TRY(rt.charge_bytes(out.size()));
  return out;
}

}  // namespace minfer::jinja
