// Conversions from text to values, and the messages of everything that is refused.
#include "yaml/reader.hpp"

#include <charconv>
#include <cmath>
#include <system_error>

#include "base/nearest_name.hpp"

namespace minfer::yaml {
namespace {

std::string found_text(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kSequence: return "a list";
    case Node::Kind::kMapping: return "a mapping";
    case Node::Kind::kScalar: break;
  }
  return quote(node.text) + (node.quoted ? " in quotes (quoted values are text; remove the quotes)" : "");
}

Error expected(const Node& node, std::string_view what) { return node.error(text("must be {}, found {}", what, found_text(node))); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view skip_digits(std::string_view s) {
  while (!s.empty() && is_digit(s.front())) s.remove_prefix(1);
  return s;
}

std::string_view without_sign(std::string_view s) {
  if (!s.empty() && (s.front() == '+' || s.front() == '-')) s.remove_prefix(1);
  return s;
}

// std::from_chars knows no '+'.
std::string_view without_plus(std::string_view s) {
  if (!s.empty() && s.front() == '+') s.remove_prefix(1);
  return s;
}

bool has_leading_zero(std::string_view s) {
  s = without_sign(s);
  return s.size() > 1 && s[0] == '0' && is_digit(s[1]);
}

bool is_decimal_integer(std::string_view s) {
  s = without_sign(s);
  return !s.empty() && skip_digits(s).empty();
}

// [-+]? ( .digits | digits [.digits?] ) [e [-+]? digits]: the numbers of YAML 1.2 but .inf and .nan.
bool is_decimal_number(std::string_view s) {
  s = without_sign(s);
  const std::string_view after_whole = skip_digits(s);
  size_t n_digits = s.size() - after_whole.size();
  s = after_whole;
  if (!s.empty() && s.front() == '.') {
    s.remove_prefix(1);
    const std::string_view after_fraction = skip_digits(s);
    n_digits += s.size() - after_fraction.size();
    s = after_fraction;
  }
  if (n_digits == 0) return false;
  if (s.empty()) return true;
  if (s.front() != 'e' && s.front() != 'E') return false;
  s = without_sign(s.substr(1));
  return !s.empty() && skip_digits(s).empty();
}

// "between 0 and 1", "at least 0", "at most 5"; a bound at the end of a type is left out.
template <class T>
std::string range_text(T min, T max, bool has_min, bool has_max) {
  if (has_min && has_max) return text("between {} and {}", min, max);
  if (has_min) return text("at least {}", min);
  return text("at most {}", max);
}

}  // namespace

Result<std::string> read_string(const Node& node) {
  if (node.kind != Node::Kind::kScalar) return expected(node, "text");
  return node.text;
}

Result<bool> read_boolean(const Node& node) {
  if (node.kind == Node::Kind::kScalar && !node.quoted) {
    if (node.text == "true") return true;
    if (node.text == "false") return false;
  }
  return expected(node, "true or false");
}

Result<int64_t> read_integer(const Node& node, IntegerRange range) {
  if (node.kind != Node::Kind::kScalar || node.quoted || !is_decimal_integer(node.text)) return expected(node, "a whole number");
  if (has_leading_zero(node.text)) return node.error(text("a number may not begin with 0, found {}", quote(node.text)));
  const std::string_view digits = without_plus(node.text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return node.error(text("{} does not fit in 64 bits", quote(node.text)));
  if (value < range.min || value > range.max) {
    const bool has_min = range.min != std::numeric_limits<int64_t>::min();
    const bool has_max = range.max != std::numeric_limits<int64_t>::max();
    return node.error(text("must be {}, found {}", range_text(range.min, range.max, has_min, has_max), value));
  }
  return value;
}

Result<uint64_t> read_unsigned(const Node& node) {
  if (node.kind != Node::Kind::kScalar || node.quoted || !is_decimal_integer(node.text)) return expected(node, "a whole number");
  if (has_leading_zero(node.text)) return node.error(text("a number may not begin with 0, found {}", quote(node.text)));
  const std::string_view digits = without_plus(node.text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);  // refuses a sign
  if (error != std::errc() || end != digits.data() + digits.size())
    return node.error(text("must be between 0 and {}, found {}", UINT64_MAX, quote(node.text)));
  return value;
}

Result<double> read_number(const Node& node, NumberRange range) {
  if (node.kind != Node::Kind::kScalar || node.quoted || !is_decimal_number(node.text)) return expected(node, "a number");
  if (has_leading_zero(node.text)) return node.error(text("a number may not begin with 0, found {}", quote(node.text)));
  const std::string_view digits = without_plus(node.text);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  // The type's own limit counts as no bound: the message then speaks of the size.
  constexpr double kUnbounded = std::numeric_limits<float>::max();
  const bool has_min = range.min > -kUnbounded;
  const bool has_max = range.max < kUnbounded;
  const bool too_large = error == std::errc() && ((!has_min && value < range.min) || (!has_max && value > range.max));
  if (error != std::errc() || end != digits.data() + digits.size() || too_large)
    return node.error(text("{} is too large or too small for a number here", quote(node.text)));
  if (value < range.min || value > range.max)
    return node.error(text("must be {}, found {}", range_text(range.min, range.max, has_min, has_max), quote(node.text)));
  return value;
}

Result<std::vector<std::string>> read_strings(const Node& node) {
  if (node.kind != Node::Kind::kSequence)
    return node.error(text("must be a list of texts such as [\"a\", \"b\"], found {}",
                           node.kind == Node::Kind::kMapping ? "a mapping" : quote(node.text)));
  std::vector<std::string> values;
  for (const Node& item : node.children) {
    MINFER_ASSIGN(std::string value, read_string(item));
    values.push_back(std::move(value));
  }
  return values;
}

Reader::Reader(const Node& mapping) : mapping_(mapping) {
  if (mapping.kind != Node::Kind::kMapping) fail(expected(mapping, "a mapping (key: value)"));
}

const Node* Reader::node(std::string_view key) {
  known_.push_back(key);
  return mapping_.find(key);
}

void Reader::require(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (!mapping_.find(key)) fail(mapping_.error(text("the key '{}' is missing", key)));
}

void Reader::fail(Error error) {
  if (status_.ok()) status_ = Status(std::move(error));
}

std::optional<size_t> Reader::choose(const Node& found, const std::vector<std::string_view>& words) {
  if (found.kind == Node::Kind::kScalar)
    for (size_t i = 0; i < words.size(); ++i)
      if (found.text == words[i]) return i;
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  const std::string shown = found.kind == Node::Kind::kScalar ? quote(found.text) : found_text(found);
  fail(found.error(text("must be {}, found {}", list, shown)));
  return std::nullopt;
}

Status Reader::finish() const {
  if (!status_.ok()) return status_;
  for (const Node& child : mapping_.children) {
    if (std::find(known_.begin(), known_.end(), child.key) != known_.end()) continue;
    if (const auto nearest = nearest_name(child.key, known_)) return child.key_error(text("unknown key; did you mean '{}'?", *nearest));
    std::string list;
    for (size_t i = 0; i < known_.size(); ++i) {
      if (std::find(known_.begin(), known_.begin() + i, known_[i]) != known_.begin() + i) continue;  // a key may be asked for twice
      list += (list.empty() ? "" : ", ") + std::string(known_[i]);
    }
    return child.key_error(text("unknown key; the keys here are: {}", list));
  }
  return {};
}

}  // namespace minfer::yaml
