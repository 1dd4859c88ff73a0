// Filters that make text: case, trimming, replacing, padding, joining is with the sequences.
#include <algorithm>

#include "text/jinja/filters.hpp"
#include "text/jinja/format.hpp"
#include "text/jinja/json_dump.hpp"
#include "text/jinja/json_value.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/string_ops.hpp"
#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

namespace {

template <std::string (*kMap)(std::string_view), bool kKeepsMarkup = true>
Result<Value> mapped(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "this filter", {}));
  MINFER_ASSIGN(const std::string s, to_str(rt, input));
  MINFER_TRY(rt.charge_bytes(s.size()));
  return kKeepsMarkup ? input.like(kMap(s)) : Value(kMap(s));
}

// Words begin after spaces and after - ( { [ <; unlike str.title, an apostrophe does not begin one.
std::string title_words(std::string_view s) {
  std::string out;
  bool begins = true;
  for (const char32_t c : code_points(s)) {
    std::string one;
    append_utf8(one, c);
    const bool separator = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    out += separator ? one : begins ? upper(one) : lower(one);
    begins = separator;
  }
  return out;
}

Result<Value> string(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "string", {}));
  if (input.is_string()) return input;
  MINFER_ASSIGN(std::string s, to_str(rt, input));
  return Value(std::move(s));
}

Result<Value> safe(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "safe", {}));
  MINFER_ASSIGN(std::string s, to_str(rt, input));
  return Value::markup(std::move(s));
}

Result<Value> escape(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "escape", {}));
  if (input.is_markup()) return input;
  MINFER_ASSIGN(const std::string s, to_str(rt, input));
  MINFER_TRY(rt.charge_bytes(s.size()));
  return Value::markup(escape_html(s));
}

Result<Value> force_escape(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "forceescape", {}));
  MINFER_ASSIGN(const std::string s, to_str(rt, input));
  return Value::markup(escape_html(s));
}

Result<Value> trim(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "trim", {"chars"}));
  MINFER_ASSIGN(const std::string s, to_str(rt, input));
  MINFER_TRY(rt.charge_bytes(s.size()));
  if (!p[0] || p[0]->is_none()) return input.like(std::string(strip(s, true, true)));
  MINFER_ASSIGN(const std::string chars, string_or(p[0], "", "chars"));
  return input.like(std::string(strip(s, true, true, &chars)));
}

Result<Value> replace_filter(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "replace", {"old", "new", "count"}, 2));
  MINFER_ASSIGN(const std::string s, to_str(rt, input));
  MINFER_ASSIGN(const std::string from, to_str(rt, *p[0]));
  MINFER_ASSIGN(const std::string to, to_str(rt, *p[1]));
  MINFER_ASSIGN(const int64_t count, int_or(p[2] && !p[2]->is_none() ? p[2] : std::nullopt, -1, "count"));
  MINFER_ASSIGN(std::string out, replace(rt, s, from, to, count));
  return Value(std::move(out));
}

Result<Value> indent(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "indent", {"width", "first", "blank"}));
  if (input.is_undefined()) return invalid("{}", input.undefined_message());
  if (!input.is_string()) return invalid("needs a string, not {}", type_name(input));
  std::string indention;
  if (p[0] && p[0]->is_string()) {
    indention = p[0]->string();
  } else {
    MINFER_ASSIGN(const int64_t width, int_or(p[0], 4, "width"));
    MINFER_ASSIGN(indention, justify(rt, "", width, '<', " "));
  }
  const std::vector<std::string> lines = split_lines(input.string() + "\n");
  std::string out = bool_or(p[1], false) ? indention : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\n";
    if (i > 0 && (bool_or(p[2], false) || !lines[i].empty())) out += indention;
    out += lines[i];
    if (out.size() > rt.limits().max_output_bytes) break;
  }
  MINFER_TRY(rt.charge_bytes(out.size()));
  return input.like(std::move(out));
}

Result<Value> center(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "center", {"width"}));
  MINFER_ASSIGN(const std::string s, to_str(rt, input));
  MINFER_ASSIGN(const int64_t width, int_or(p[0], 80, "width"));
  MINFER_ASSIGN(std::string out, justify(rt, s, width, '^', " "));
  return input.like(std::move(out));
}

Result<Value> truncate(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "truncate", {"length", "killwords", "end", "leeway"}));
  MINFER_ASSIGN(const int64_t length, int_or(p[0], 255, "length"));
  MINFER_ASSIGN(const std::string end, string_or(p[2], "...", "end"));
  MINFER_ASSIGN(const int64_t leeway, int_or(p[3] && !p[3]->is_none() ? p[3] : std::nullopt, 5, "leeway"));
  const auto end_chars = static_cast<int64_t>(char_count(end));
  if (length < end_chars) return invalid("expected length >= {}, got {}", end_chars, length);
  if (leeway < 0) return invalid("expected leeway >= 0, got {}", leeway);
  MINFER_ASSIGN(const int64_t whole, length_of(input));
  if (whole - leeway <= length) return input;
  if (!input.is_string()) return invalid("needs a string, not {}", type_name(input));
  const std::u32string chars = code_points(input.string());
  MINFER_TRY(rt.charge_bytes(input.string().size()));
  const std::u32string cut = chars.substr(0, static_cast<size_t>(length - end_chars));
  const size_t space = bool_or(p[1], false) ? std::u32string::npos : cut.rfind(U' ');
  return Value(to_utf8(cut.substr(0, space)) + end);
}

Result<Value> word_count(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "wordcount", {}));
  MINFER_ASSIGN(const std::string s, to_str(rt, input));
  int64_t words = 0;
  bool inside = false;
  for (const char32_t c : code_points(s)) {
    if (is_word(c) && !inside) ++words;
    inside = is_word(c);
  }
  return Value(words);
}

Result<Value> format(Runtime& rt, const Value& input, const Args& args) {
  if (!args.positional.empty() && !args.keyword.empty()) return invalid("positional and keyword arguments cannot be mixed");
  MINFER_ASSIGN(const std::string pattern, to_str(rt, input));
  if (args.keyword.empty()) return format_percent(rt, pattern, make_tuple(args.positional));
  auto named = std::make_shared<Dict>();
  for (const auto& [name, value] : args.keyword) named->set(Value(name), value);
  return format_percent(rt, pattern, Value(std::move(named)));
}

// json.dumps(value, ensure_ascii=False, ...), which is how transformers defines this filter for chat templates.
Result<Value> to_json(Runtime& rt, const Value& input, const Args& args) {
  MINFER_ASSIGN(const auto p, bind(args, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = bool_or(p[0], false);
  style.sort_keys = bool_or(p[3], false);
  if (p[1] && p[1]->is_string()) {
    style.indent = p[1]->string();
  } else if (p[1] && !p[1]->is_none()) {
    MINFER_ASSIGN(const int64_t width, int_or(p[1], 0, "indent"));
    if (width > 1000) return invalid("indent {} is above 1000", width);
    style.indent.emplace(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (style.indent) style.item_separator.assign(1, ',');
  if (p[2] && !p[2]->is_none()) {
    const List* pair = p[2]->list();
    if (!pair || pair->items.size() != 2 || !pair->items[0].is_string() || !pair->items[1].is_string()) {
      return invalid("separators must be two strings");
    }
    style.item_separator = pair->items[0].string();
    style.key_separator = pair->items[1].string();
  }
  MINFER_ASSIGN(std::string out, dump_json(rt, input, style));
  return Value(std::move(out));
}

// Not of Jinja: DeepSeek's templates read tool calls' arguments with it.
Result<Value> from_json_text(Runtime& rt, const Value& input, const Args& args) {
  MINFER_TRY(bind(args, "from_json", {}));
  if (!input.is_string()) return invalid("needs a string, not {}", type_name(input));
  MINFER_TRY(rt.charge(input.string().size() / 4));
  return parse_json(input.string());
}

constexpr FilterEntry kFilters[] = {
    {"upper", mapped<upper>},
    {"lower", mapped<lower>},
    {"title", mapped<title_words, false>},
    {"capitalize", mapped<capitalize>},
    {"string", string},
    {"safe", safe},
    {"escape", escape},
    {"e", escape},
    {"forceescape", force_escape},
    {"trim", trim},
    {"replace", replace_filter},
    {"indent", indent},
    {"center", center},
    {"truncate", truncate},
    {"wordcount", word_count},
    {"format", format},
    {"tojson", to_json},
    {"from_json", from_json_text},
};

}  // namespace

Filter find_text_filter(std::string_view name) { return find_in(kFilters, name); }

}  // namespace minfer::jinja
