// Reads UTF-8 one character at a time, exactly as RFC 3629 defines it: overlong forms, surrogates and code points above
// U+10FFFF are ill-formed. A byte that belongs to no well-formed sequence is a character of its own, so nothing is ever lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace minfer {

inline constexpr uint32_t kIllFormed = UINT32_MAX;

struct Utf8Char {
  uint32_t code_point;  // kIllFormed for a byte outside every well-formed sequence
  uint32_t size;        // bytes, 1 to 4
};

// What the first byte of a sequence says about the rest.
struct Utf8Lead {
  uint32_t size;              // 0: this byte begins no sequence
  uint8_t second_min = 0x80;  // the range of the second byte; third and fourth are always 80 to BF
  uint8_t second_max = 0xBF;
};

constexpr Utf8Lead utf8_lead(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// How many of the first `lead.size` bytes of text are there and well-formed. text is not empty.
constexpr uint32_t utf8_valid_prefix(std::string_view text, Utf8Lead lead) {
  if (lead.size == 0) return 0;
  uint32_t n = 1;
  while (n < lead.size && n < text.size()) {
    const auto byte = static_cast<uint8_t>(text[n]);
    if (n == 1 ? (byte < lead.second_min || byte > lead.second_max) : (byte < 0x80 || byte > 0xBF)) break;
    ++n;
  }
  return n;
}

// The character that begins at text[pos]; pos < text.size().
constexpr Utf8Char utf8_at(std::string_view text, size_t pos) {
  const auto first = static_cast<uint8_t>(text[pos]);
  if (first < 0x80) return {first, 1};
  const Utf8Lead lead = utf8_lead(first);
  if (lead.size == 0 || utf8_valid_prefix(text.substr(pos), lead) != lead.size) return {kIllFormed, 1};
  uint32_t code_point = first & (0x7Fu >> lead.size);
  for (uint32_t i = 1; i < lead.size; ++i) code_point = code_point << 6 | (static_cast<uint8_t>(text[pos + i]) & 0x3Fu);
  return {code_point, lead.size};
}

// Length of the unfinished character at the end of text: 0 to 3 bytes that later bytes may still complete.
constexpr size_t utf8_unfinished_tail(std::string_view text) {
  for (size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const std::string_view tail = text.substr(text.size() - n);
    const Utf8Lead lead = utf8_lead(static_cast<uint8_t>(tail[0]));
    if (lead.size != 0) return n < lead.size && utf8_valid_prefix(tail, lead) == n ? n : 0;
  }
  return 0;
}

}  // namespace minfer
