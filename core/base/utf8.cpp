// UTF-8 validation and quoting. No tables of characters: those belong to the text library.
#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"
#include "base/utf8_decode.hpp"

namespace minfer {
namespace {

// Appends the character (or the stray byte) that text begins with; control characters and stray bytes as escapes. Returns its length.
size_t append_visible(std::string_view text, std::string& out) {
  const Utf8Char c = utf8_at(text, 0);
  const bool control = c.code_point < 0x20 || (c.code_point >= 0x7F && c.code_point < 0xA0);  // a terminal obeys the upper ones too
  if (c.code_point == '\n')
    out += "\\n";
  else if (c.code_point == '\t')
    out += "\\t";
  else if (c.code_point == '\r')
    out += "\\r";
  else if (control || c.code_point == kIllFormed)
    for (const char byte : text.substr(0, c.size)) out += minfer::text("\\x{:02x}", static_cast<uint8_t>(byte));
  else
    out += text.substr(0, c.size);
  return c.size;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    if (c.code_point == kIllFormed) return false;
    at += c.size;
  }
  return true;
}

std::string quote(std::string_view text, size_t max_bytes) {
  std::string out = "'";
  size_t at = 0;
  while (at < text.size()) {
    if (at + utf8_at(text, at).size > max_bytes) break;
    if (text[at] == '\\' || text[at] == '\'') out += '\\';
    at += append_visible(text.substr(at), out);
  }
  out += '\'';
  if (at < text.size()) out += minfer::text("... ({} bytes)", text.size());
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) text.remove_prefix(append_visible(text, out));
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += one_line(text.substr(begin, end - begin));
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace minfer
