// The methods of Python's str that templates call.
#include <algorithm>

#include "text/jinja/attributes.hpp"
#include "text/jinja/format.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/string_ops.hpp"
#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

namespace {

Result<Value> strip_by(const Value& self, const Args& args, std::string_view name, bool left, bool right) {
  MINFER_ASSIGN(const auto p, bind(args, name, {"chars"}));
  if (!p[0] || p[0]->is_none()) return Value(strip(self.string(), left, right));
  if (!p[0]->is_string()) return invalid("{} arg must be None or str", name);
  return Value(strip(self.string(), left, right, &p[0]->string()));
}

Result<Value> split_by(Runtime& rt, const Value& self, const Args& args, std::string_view name, bool from_right) {
  MINFER_ASSIGN(const auto p, bind(args, name, {"sep", "maxsplit"}));
  MINFER_ASSIGN(const int64_t limit, int_or(p[1], -1, "maxsplit"));
  std::vector<std::string> parts;
  MINFER_TRY(rt.charge(self.string().size() / 16));
  if (!p[0] || p[0]->is_none()) {
    parts = from_right ? rsplit_space(self.string(), limit) : split_space(self.string(), limit);
  } else {
    if (!p[0]->is_string()) return invalid("must be str or None, not {}", type_name(*p[0]));
    if (p[0]->string().empty()) return invalid("empty separator");
    parts = from_right ? rsplit(self.string(), p[0]->string(), limit) : split(self.string(), p[0]->string(), limit);
  }
  MINFER_TRY(rt.charge(parts.size()));
  std::vector<Value> out;
  for (std::string& part : parts) out.emplace_back(std::move(part));
  return make_list(std::move(out));
}

Result<Value> split_lines_method(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "splitlines", {"keepends"}));
  std::vector<Value> out;
  for (std::string& line : split_lines(self.string(), bool_or(p[0], false))) out.emplace_back(std::move(line));
  MINFER_TRY(rt.charge(out.size() + self.string().size() / 16));
  return make_list(std::move(out));
}

// self[start:end] as bytes, and how many characters precede it.
struct Window {
  std::string text;
  int64_t offset = 0;
};

Result<Window> window(const Value& self, const std::optional<Value>& start, const std::optional<Value>& end) {
  const auto given = [](const std::optional<Value>& v) { return v && !v->is_none(); };
  if (!given(start) && !given(end)) return Window{self.string(), 0};
  const std::u32string chars = code_points(self.string());
  const auto size = static_cast<int64_t>(chars.size());
  MINFER_ASSIGN(int64_t from, int_or(given(start) ? start : std::nullopt, 0, "start"));
  MINFER_ASSIGN(int64_t to, int_or(given(end) ? end : std::nullopt, size, "end"));
  if (from < 0) from = std::max<int64_t>(0, from < -size ? 0 : from + size);
  if (to < 0) to = std::max<int64_t>(0, to < -size ? 0 : to + size);
  to = std::min(to, size);
  if (from > to) return Window{"", -1};  // nothing is found there, not even ""
  return Window{to_utf8(chars.substr(static_cast<size_t>(from), static_cast<size_t>(to - from))), from};
}

Result<Value> has_affix(const Value& self, const Args& args, std::string_view name, bool prefix) {
  MINFER_ASSIGN(const auto p, bind(args, name, {"affix", "start", "end"}, 1));
  MINFER_ASSIGN(const Window w, window(self, p[1], p[2]));
  const auto matches = [&](const std::string& affix) {
    if (w.offset < 0) return false;
    return prefix ? w.text.starts_with(affix) : w.text.ends_with(affix);
  };
  if (p[0]->is_string()) return Value(matches(p[0]->string()));
  const List* tuple = p[0]->list();
  if (!tuple || tuple->kind != List::Kind::kTuple) {
    return invalid("{} first arg must be str or a tuple of str, not {}", name, type_name(*p[0]));
  }
  bool any = false;
  for (const Value& affix : tuple->items) {
    if (!affix.is_string()) return invalid("tuple for {} must only contain str, not {}", name, type_name(affix));
    any = any || matches(affix.string());
  }
  return Value(any);
}

Result<Value> find_in(Runtime& rt, const Value& self, const Args& args, std::string_view name, bool last, bool must) {
  MINFER_ASSIGN(const auto p, bind(args, name, {"sub", "start", "end"}, 1));
  MINFER_ASSIGN(const std::string sub, string_or(p[0], "", "argument 1"));
  MINFER_TRY(rt.charge(self.string().size() / 16));
  MINFER_ASSIGN(const Window w, window(self, p[1], p[2]));
  const size_t at = w.offset < 0 ? std::string::npos : last ? w.text.rfind(sub) : w.text.find(sub);
  if (at != std::string::npos) return Value(w.offset + static_cast<int64_t>(char_count(std::string_view(w.text).substr(0, at))));
  if (must) return invalid("substring not found");
  return Value(-1);
}

Result<Value> count_method(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "count", {"sub", "start", "end"}, 1));
  MINFER_ASSIGN(const std::string sub, string_or(p[0], "", "argument 1"));
  MINFER_TRY(rt.charge(self.string().size() / 16));
  MINFER_ASSIGN(const Window w, window(self, p[1], p[2]));
  if (w.offset < 0) return Value(0);
  if (sub.empty()) return Value(static_cast<int64_t>(char_count(w.text)) + 1);
  int64_t n = 0;
  for (size_t at = w.text.find(sub); at != std::string::npos; at = w.text.find(sub, at + sub.size())) ++n;
  return Value(n);
}

Result<Value> replace_method(Runtime& rt, const Value& self, const Args& args) {
  if (!args.keyword.empty()) return invalid("replace() takes no keyword arguments");
  MINFER_ASSIGN(const auto p, bind(args, "replace", {"old", "new", "count"}, 2));
  MINFER_ASSIGN(const std::string old_text, string_or(p[0], "", "replace() argument 1"));
  MINFER_ASSIGN(const std::string new_text, string_or(p[1], "", "replace() argument 2"));
  MINFER_ASSIGN(const int64_t count, int_or(p[2], -1, "count"));
  MINFER_ASSIGN(std::string out, replace(rt, self.string(), old_text, new_text, count));
  return Value(std::move(out));
}

Result<Value> join_method(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "join", {"iterable"}, 1));
  MINFER_ASSIGN(const auto items, items_of(rt, *p[0]));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) return invalid("sequence item {}: expected str instance, {} found", i, type_name(items[i]));
    if (i > 0) out += self.string();
    out += items[i].string();
    if (out.size() > rt.limits().max_output_bytes) break;
  }
  MINFER_TRY(rt.charge_bytes(out.size()));
  return Value(std::move(out));
}

Result<Value> partition_by(const Value& self, const Args& args, std::string_view name, bool last) {
  MINFER_ASSIGN(const auto p, bind(args, name, {"sep"}, 1));
  MINFER_ASSIGN(const std::string sep, string_or(p[0], "", "sep"));
  if (sep.empty()) return invalid("empty separator");
  const std::string& s = self.string();
  const size_t at = last ? s.rfind(sep) : s.find(sep);
  if (at == std::string::npos) return last ? make_tuple({"", "", self}) : make_tuple({self, "", ""});
  return make_tuple({s.substr(0, at), sep, s.substr(at + sep.size())});
}

Result<Value> pad_by(Runtime& rt, const Value& self, const Args& args, std::string_view name, char align) {
  MINFER_ASSIGN(const auto p, bind(args, name, {"width", "fillchar"}, 1));
  MINFER_ASSIGN(const int64_t width, int_or(p[0], 0, "width"));
  MINFER_ASSIGN(const std::string fill, string_or(p[1], " ", "fillchar"));
  if (char_count(fill) != 1) return invalid("the fill character must be exactly one character long");
  MINFER_ASSIGN(std::string out, justify(rt, self.string(), width, align, fill));
  return Value(std::move(out));
}

Result<Value> zfill(Runtime& rt, const Value& self, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "zfill", {"width"}, 1));
  MINFER_ASSIGN(const int64_t width, int_or(p[0], 0, "width"));
  const std::string& s = self.string();
  const bool sign = !s.empty() && (s[0] == '+' || s[0] == '-');
  MINFER_ASSIGN(std::string out, justify(rt, std::string_view(s).substr(sign), width - sign, '>', "0"));
  return Value((sign ? s.substr(0, 1) : "") + out);
}

Result<Value> affix_removed(const Value& self, const Args& args, std::string_view name, bool prefix) {
  MINFER_ASSIGN(const auto p, bind(args, name, {"affix"}, 1));
  MINFER_ASSIGN(const std::string affix, string_or(p[0], "", "argument 1"));
  const std::string& s = self.string();
  if (affix.empty() || !(prefix ? s.starts_with(affix) : s.ends_with(affix))) return self;
  return Value(prefix ? s.substr(affix.size()) : s.substr(0, s.size() - affix.size()));
}

template <bool (*kClass)(char32_t)>
Result<Value> all_of_class(Runtime& rt, const Value& self, const Args& args) {
  MINFER_TRY(bind(args, "is...", {}));
  MINFER_TRY(rt.charge(self.string().size() / 16));
  const std::u32string chars = code_points(self.string());
  return Value(!chars.empty() && std::all_of(chars.begin(), chars.end(), kClass));
}

template <std::string (*kMap)(std::string_view)>
Result<Value> mapped(Runtime& rt, const Value& self, const Args& args) {
  MINFER_TRY(bind(args, "this method", {}));
  MINFER_TRY(rt.charge_bytes(self.string().size()));
  return Value(kMap(self.string()));
}

Result<Value> islower(Runtime&, const Value& self, const Args&) { return Value(is_lower_text(self.string())); }
Result<Value> isupper(Runtime&, const Value& self, const Args&) { return Value(is_upper_text(self.string())); }
Result<Value> isascii(Runtime&, const Value& self, const Args&) { return Value(is_ascii(self.string())); }
Result<Value> format(Runtime& rt, const Value& self, const Args& args) { return format_braces(rt, self.string(), args); }

template <bool kLeft, bool kRight>
Result<Value> strip_method(Runtime& rt, const Value& self, const Args& args) {
  MINFER_TRY(rt.charge(1));
  return strip_by(self, args, "strip", kLeft, kRight);
}

Result<Value> not_supported(Runtime&, const Value&, const Args&) { return unsupported("this method of str is not supported"); }

struct Entry {
  std::string_view name;
  Method method;
};

constexpr Entry kMethods[] = {
    {"strip", strip_method<true, true>},
    {"lstrip", strip_method<true, false>},
    {"rstrip", strip_method<false, true>},
    {"split", [](Runtime& rt, const Value& s, const Args& a) { return split_by(rt, s, a, "split", false); }},
    {"rsplit", [](Runtime& rt, const Value& s, const Args& a) { return split_by(rt, s, a, "rsplit", true); }},
    {"splitlines", split_lines_method},
    {"startswith", [](Runtime&, const Value& s, const Args& a) { return has_affix(s, a, "startswith", true); }},
    {"endswith", [](Runtime&, const Value& s, const Args& a) { return has_affix(s, a, "endswith", false); }},
    {"replace", replace_method},
    {"join", join_method},
    {"format", format},
    {"lower", mapped<lower>},
    {"upper", mapped<upper>},
    {"title", mapped<title>},
    {"capitalize", mapped<capitalize>},
    {"casefold", mapped<lower>},
    {"swapcase", mapped<swap_case>},
    {"find", [](Runtime& rt, const Value& s, const Args& a) { return find_in(rt, s, a, "find", false, false); }},
    {"rfind", [](Runtime& rt, const Value& s, const Args& a) { return find_in(rt, s, a, "rfind", true, false); }},
    {"index", [](Runtime& rt, const Value& s, const Args& a) { return find_in(rt, s, a, "index", false, true); }},
    {"rindex", [](Runtime& rt, const Value& s, const Args& a) { return find_in(rt, s, a, "rindex", true, true); }},
    {"count", count_method},
    {"partition", [](Runtime&, const Value& s, const Args& a) { return partition_by(s, a, "partition", false); }},
    {"rpartition", [](Runtime&, const Value& s, const Args& a) { return partition_by(s, a, "rpartition", true); }},
    {"removeprefix", [](Runtime&, const Value& s, const Args& a) { return affix_removed(s, a, "removeprefix", true); }},
    {"removesuffix", [](Runtime&, const Value& s, const Args& a) { return affix_removed(s, a, "removesuffix", false); }},
    {"center", [](Runtime& rt, const Value& s, const Args& a) { return pad_by(rt, s, a, "center", '^'); }},
    {"ljust", [](Runtime& rt, const Value& s, const Args& a) { return pad_by(rt, s, a, "ljust", '<'); }},
    {"rjust", [](Runtime& rt, const Value& s, const Args& a) { return pad_by(rt, s, a, "rjust", '>'); }},
    {"zfill", zfill},
    {"isalpha", all_of_class<is_alpha>},
    {"isalnum", all_of_class<is_alnum>},
    {"isdigit", all_of_class<is_digit>},
    {"isdecimal", all_of_class<is_decimal>},
    {"isnumeric", all_of_class<is_numeric>},
    {"isspace", all_of_class<is_space>},
    {"islower", islower},
    {"isupper", isupper},
    {"isascii", isascii},
    {"encode", not_supported},
    {"expandtabs", not_supported},
    {"format_map", not_supported},
    {"isidentifier", not_supported},
    {"isprintable", not_supported},
    {"istitle", not_supported},
    {"maketrans", not_supported},
    {"translate", not_supported},
};

}  // namespace

Method find_string_method(std::string_view name) {
  for (const Entry& entry : kMethods) {
    if (entry.name == name) return entry.method;
  }
  return nullptr;
}

}  // namespace minfer::jinja
