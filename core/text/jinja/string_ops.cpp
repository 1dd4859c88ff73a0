// Splitting, replacing and padding of strings as Python does it.
#include "text/jinja/string_ops.hpp"

#include <algorithm>

#include "text/jinja/unicode.hpp"

namespace minfer::jinja {

std::vector<std::string> split(std::string_view s, std::string_view sep, int64_t limit) {
  std::vector<std::string> out;
  size_t start = 0;
  while (limit < 0 || static_cast<int64_t>(out.size()) < limit) {
    const size_t at = s.find(sep, start);
    if (at == std::string_view::npos) break;
    out.emplace_back(s.substr(start, at - start));
    start = at + sep.size();
  }
  out.emplace_back(s.substr(start));
  return out;
}

std::vector<std::string> rsplit(std::string_view s, std::string_view sep, int64_t limit) {
  std::vector<std::string> out;
  while (limit < 0 || static_cast<int64_t>(out.size()) < limit) {
    const size_t at = s.rfind(sep);
    if (at == std::string_view::npos) break;
    out.emplace_back(s.substr(at + sep.size()));
    s = s.substr(0, at);
  }
  out.emplace_back(s);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> split_space(std::string_view s, int64_t limit) {
  std::vector<std::string> out;
  for (s = strip(s, true, false); !s.empty(); s = strip(s, true, false)) {
    if (limit >= 0 && static_cast<int64_t>(out.size()) == limit) {
      out.emplace_back(s);
      break;
    }
    std::string word;
    const std::string_view rest = s;
    size_t i = 0;
    while (i < rest.size()) {  // to the next character that strip() would take
      const std::string_view tail = rest.substr(i);
      size_t n = 1;
      while (n < tail.size() && (static_cast<unsigned char>(tail[n]) & 0xC0) == 0x80) ++n;
      if (strip(tail.substr(0, n), true, false).empty()) break;
      i += n;
    }
    out.emplace_back(rest.substr(0, i));
    s = rest.substr(i);
  }
  return out;
}

std::vector<std::string> rsplit_space(std::string_view s, int64_t limit) {
  std::vector<std::string> words = split_space(s, -1);
  if (limit < 0 || static_cast<int64_t>(words.size()) <= limit) return words;
  std::string_view rest = strip(s, false, true);
  std::vector<std::string> out;
  for (int64_t i = 0; i < limit; ++i) {
    out.insert(out.begin(), words.back());
    rest = strip(rest.substr(0, rest.size() - words.back().size()), false, true);
    words.pop_back();
  }
  if (!rest.empty()) out.insert(out.begin(), std::string(rest));
  return out;
}

Result<std::string> replace(Runtime& rt, std::string_view s, std::string_view from, std::string_view to, int64_t count) {
  std::string out;
  MINFER_TRY(rt.charge_bytes(s.size()));
  int64_t done = 0;
  const auto more = [&] { return (count < 0 || done < count) && out.size() <= rt.limits().max_output_bytes; };
  if (from.empty()) {
    const std::u32string chars = code_points(s);
    for (size_t i = 0; i <= chars.size(); ++i) {
      if (more()) {
        out += to;
        ++done;
      }
      if (i < chars.size()) append_utf8(out, chars[i]);
    }
  } else {
    size_t start = 0;
    for (size_t at = s.find(from); at != std::string_view::npos && more(); at = s.find(from, start)) {
      out += s.substr(start, at - start);
      out += to;
      start = at + from.size();
      ++done;
    }
    out += s.substr(start);
  }
  MINFER_TRY(rt.charge_bytes(out.size()));
  return out;
}

Result<std::string> justify(Runtime& rt, std::string_view s, int64_t width, char align, std::string_view fill) {
  const auto length = static_cast<int64_t>(char_count(s));
  if (width <= length) return std::string(s);
  const int64_t missing = width - length;
  if (static_cast<uint64_t>(missing) > rt.limits().max_output_bytes) MINFER_TRY(rt.charge_bytes(UINT64_MAX));
  MINFER_TRY(rt.charge_bytes(s.size() + static_cast<uint64_t>(missing) * fill.size()));
  // Python's center gives the odd one to the left where the width is odd.
  const int64_t left = align == '<' ? 0 : align == '>' ? missing : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += s;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

std::string swap_case(std::string_view s) {
  std::string out;
  for (const char32_t c : code_points(s)) {
    std::string one;
    append_utf8(one, c);
    out += is_upper(c) ? lower(one) : upper(one);
  }
  return out;
}

namespace {

bool cased_as(std::string_view s, bool (*wanted)(char32_t), bool (*other)(char32_t)) {
  bool any = false;
  for (const char32_t c : code_points(s)) {
    if (other(c)) return false;
    any = any || wanted(c);
  }
  return any;
}

}  // namespace

bool is_lower_text(std::string_view s) { return cased_as(s, is_lower, is_upper); }
bool is_upper_text(std::string_view s) { return cased_as(s, is_upper, is_lower); }

}  // namespace minfer::jinja
