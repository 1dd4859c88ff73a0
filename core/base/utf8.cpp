// UTF-8 validation and quoting. No tables of characters: those belong to the text library.
#include "base/utf8.hpp"

#include <cstdint>

#include "base/error.hpp"

namespace minfer {
namespace {

// Length of the well-formed sequence that text begins with; 0 when it begins with none. text is not empty.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // The second byte rules out overlong forms, surrogates and values above U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

// Appends the character (or the stray byte) that text begins with, of `length` bytes as sequence_length says; control characters and
// stray bytes as escapes.
void append_visible(std::string_view text, size_t length, std::string& out) {
  const auto code = static_cast<uint8_t>(text[0]);
  if (length > 1)
    out += text.substr(0, length);
  else if (code == '\n')
    out += "\\n";
  else if (code == '\t')
    out += "\\t";
  else if (code == '\r')
    out += "\\r";
  else if (length == 0 || code < 0x20 || code == 0x7F)
    out += minfer::text("\\x{:02x}", uint64_t{code});
  else
    out += text[0];
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quote(std::string_view text, size_t max_bytes) {
  std::string out = "'";
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t length = sequence_length(rest);
    const size_t taken = text.size() - rest.size();
    if (taken + (length ? length : 1) > max_bytes) break;
    if (rest[0] == '\\' || rest[0] == '\'') out += '\\';
    append_visible(rest, length, out);
    rest.remove_prefix(length ? length : 1);
  }
  out += '\'';
  if (!rest.empty()) out += minfer::text("... ({} bytes)", text.size());
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    append_visible(text, length, out);
    text.remove_prefix(length ? length : 1);
  }
  return out;
}

}  // namespace minfer
