// Characters of UTF-8 text as Python's str sees them, over utf8proc's tables.
#include "text/jinja/unicode.hpp"

#include <utf8proc.h>

namespace minfer::jinja {

namespace {

int32_t signed_code(char32_t c) { return static_cast<int32_t>(c); }
utf8proc_category_t category(char32_t c) { return utf8proc_category(signed_code(c)); }

// Decodes the character at `at`; sets its length in bytes.
char32_t decode_at(std::string_view s, size_t at, size_t& length) {
  const auto byte = static_cast<unsigned char>(s[at]);
  length = 1;
  if (byte < 0x80) return byte;
  utf8proc_int32_t c = 0;
  const auto n =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(s.data() + at), static_cast<utf8proc_ssize_t>(s.size() - at), &c);
  if (n <= 0 || c < 0) return 0xDC00u + byte;
  length = static_cast<size_t>(n);
  return static_cast<char32_t>(c);
}

void append_upper(std::u32string& out, char32_t c) {
  if (c == 0xDF) {
    out += U"SS";
  } else {
    out += static_cast<char32_t>(utf8proc_toupper(signed_code(c)));
  }
}

void append_title(std::u32string& out, char32_t c) {
  if (c == 0xDF) {
    out += U"Ss";
  } else {
    out += static_cast<char32_t>(utf8proc_totitle(signed_code(c)));
  }
}

char32_t lower_char(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(signed_code(c))); }

}  // namespace

std::u32string code_points(std::string_view utf8) {
  std::u32string out;
  out.reserve(utf8.size());
  for (size_t i = 0, n = 0; i < utf8.size(); i += n) out += decode_at(utf8, i, n);
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  if (c >= 0xDC80 && c <= 0xDCFF) {
    out += static_cast<char>(c - 0xDC00);
    return;
  }
  utf8proc_uint8_t buffer[4];
  const auto n = utf8proc_encode_char(signed_code(c), buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(n));
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

bool is_ascii(std::string_view s) {
  for (const char c : s) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

size_t char_count(std::string_view utf8) {
  size_t count = 0;
  for (size_t i = 0, n = 0; i < utf8.size(); i += n, ++count) decode_at(utf8, i, n);
  return count;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) { return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029; }

bool is_alpha(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089);
}
bool is_numeric(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}
bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_lower(char32_t c) { return utf8proc_islower(signed_code(c)) != 0; }
bool is_upper(char32_t c) { return utf8proc_isupper(signed_code(c)) != 0; }

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
  }
}

bool is_word(char32_t c) { return c == '_' || is_alnum(c); }

std::string upper(std::string_view s) {
  std::u32string out;
  for (const char32_t c : code_points(s)) append_upper(out, c);
  return to_utf8(out);
}

std::string lower(std::string_view s) {
  std::u32string out = code_points(s);
  for (char32_t& c : out) c = lower_char(c);
  return to_utf8(out);
}

std::string capitalize(std::string_view s) {
  std::u32string out;
  bool first = true;
  for (const char32_t c : code_points(s)) {
    if (first) {
      append_title(out, c);
    } else {
      out += lower_char(c);
    }
    first = false;
  }
  return to_utf8(out);
}

std::string title(std::string_view s) {
  std::u32string out;
  bool after_cased = false;
  for (const char32_t c : code_points(s)) {
    if (after_cased) {
      out += lower_char(c);
    } else {
      append_title(out, c);
    }
    after_cased = is_lower(c) || is_upper(c) || category(c) == UTF8PROC_CATEGORY_LT;
  }
  return to_utf8(out);
}

std::vector<std::string> split_lines(std::string_view s, bool keep_ends) {
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t i = 0, n = 0; i < s.size(); i += n) {
    if (!is_line_break(decode_at(s, i, n))) continue;
    if (s[i] == '\r' && i + 1 < s.size() && s[i + 1] == '\n') n = 2;
    lines.emplace_back(s.substr(start, (keep_ends ? i + n : i) - start));
    start = i + n;
  }
  if (start < s.size()) lines.emplace_back(s.substr(start));
  return lines;
}

std::string_view strip(std::string_view s, bool left, bool right, const std::string* chars) {
  const std::u32string set = chars ? code_points(*chars) : std::u32string();
  const auto strippable = [&](char32_t c) { return chars ? set.find(c) != std::u32string::npos : is_space(c); };
  size_t begin = 0;
  size_t end = s.size();
  while (left && begin < end) {
    size_t n = 0;
    if (!strippable(decode_at(s, begin, n))) break;
    begin += n;
  }
  while (right && end > begin) {
    size_t start = end - 1;
    // back over at most three continuation bytes to the character that ends here
    while (start > begin && end - start < 4 && (static_cast<unsigned char>(s[start]) & 0xC0) == 0x80) --start;
    size_t n = 0;
    char32_t c = decode_at(s, start, n);
    if (start + n != end) {  // not UTF-8: the last byte stands alone
      start = end - 1;
      c = decode_at(s, start, n);
    }
    if (!strippable(c)) break;
    end = start;
  }
  return s.substr(begin, end - begin);
}

}  // namespace minfer::jinja
