#include "text/pretokenizers.hpp"

#include <utf8proc.h>

#include <array>
#include <cstdint>

#include "base/utf8_decode.hpp"

namespace minfer {
namespace {

enum class CharClass : uint8_t { kLetter, kNumber, kSpace, kOther };  // \p{L}, \p{N}, \s and the rest

constexpr CharClass ascii_class(uint8_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharClass::kLetter;
  if (c >= '0' && c <= '9') return CharClass::kNumber;
  if (c == ' ' || (c >= 0x09 && c <= 0x0D)) return CharClass::kSpace;
  return CharClass::kOther;
}

constexpr std::array<CharClass, 128> kAsciiClasses = [] {
  std::array<CharClass, 128> classes{};
  for (uint8_t c = 0; c < 128; ++c) classes[c] = ascii_class(c);
  return classes;
}();

// The property White_Space beyond ASCII (Unicode PropList.txt). It is wider than the category Zs and excludes U+200B and U+FEFF.
constexpr bool is_white_space(uint32_t c) {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

CharClass unicode_class(uint32_t code_point) {
  if (code_point == kIllFormed) return CharClass::kOther;
  if (is_white_space(code_point)) return CharClass::kSpace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharClass::kNumber;
    default: return CharClass::kOther;
  }
}

struct Char {
  CharClass cls;
  uint32_t size;
};

Char char_at(std::string_view text, size_t pos) {
  const auto byte = static_cast<uint8_t>(text[pos]);
  if (byte < 0x80) return {kAsciiClasses[byte], 1};
  const Utf8Char c = utf8_at(text, pos);
  return {unicode_class(c.code_point), c.size};
}

bool class_at_is(std::string_view text, size_t pos, CharClass cls) { return pos < text.size() && char_at(text, pos).cls == cls; }

// End of the run of characters of one class that begins at pos (pos itself when there is none).
size_t run_end(std::string_view text, size_t pos, CharClass cls) {
  while (pos < text.size()) {
    const Char c = char_at(text, pos);
    if (c.cls != cls) break;
    pos += c.size;
  }
  return pos;
}

bool is_newline(char c) { return c == '\r' || c == '\n'; }

// 's 't 're 've 'm 'll 'd at text[begin]: its length, or 0.
size_t contraction(std::string_view text, size_t begin, bool any_case) {
  if (text[begin] != '\'') return 0;
  const auto letter = [&](size_t offset) -> char {
    if (begin + offset >= text.size()) return 0;
    const char c = text[begin + offset];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char a = letter(1), b = letter(2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  return 0;
}

// \s+(?!\S)|\s+ on the white space text[begin, run): all of it at an end of text, else all but its last character
// (which goes to the word that follows), else the only one.
size_t spaces_before_word(std::string_view text, size_t begin, size_t run, bool at_end) {
  if (at_end) return run;
  size_t last = run - 1;
  while (last > begin && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
  return last > begin ? last : run;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,kNumbers}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// Llama 3: three numbers at most; Qwen2: one.
template <int kNumbers>
size_t llama3_piece_end(std::string_view text, size_t begin) {
  if (const size_t n = contraction(text, begin, true)) return begin + n;
  const Char first = char_at(text, begin);
  const size_t next = begin + first.size;
  if (first.cls == CharClass::kLetter) return run_end(text, next, CharClass::kLetter);
  if (first.cls == CharClass::kNumber) {
    size_t end = next;
    for (int n = 1; n < kNumbers && class_at_is(text, end, CharClass::kNumber); ++n) end += char_at(text, end).size;
    return end;
  }
  if (!is_newline(text[begin]) && class_at_is(text, next, CharClass::kLetter)) return run_end(text, next, CharClass::kLetter);

  size_t symbols = begin;
  if (text[begin] == ' ' && class_at_is(text, next, CharClass::kOther)) symbols = next;
  if (symbols != begin || first.cls == CharClass::kOther) {
    size_t end = run_end(text, symbols, CharClass::kOther);
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }

  const size_t run = run_end(text, next, CharClass::kSpace);
  for (size_t end = run; end > begin; --end)
    if (is_newline(text[end - 1])) return end;
  return spaces_before_word(text, begin, run, run == text.size());
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// kNumbersAlone (SmolLM): each \p{N} is a piece, and the pattern is matched between them.
template <bool kNumbersAlone>
size_t gpt2_piece_end(std::string_view text, size_t begin) {
  if (const size_t n = contraction(text, begin, false)) return begin + n;
  const Char first = char_at(text, begin);
  const size_t next = begin + first.size;
  if (kNumbersAlone && first.cls == CharClass::kNumber) return next;
  if (first.cls != CharClass::kSpace) return run_end(text, next, first.cls);
  if (text[begin] == ' ' && next < text.size()) {
    const CharClass word = char_at(text, next).cls;
    if (word != CharClass::kSpace && !(kNumbersAlone && word == CharClass::kNumber)) return run_end(text, next, word);
  }
  const size_t run = run_end(text, next, CharClass::kSpace);
  return spaces_before_word(text, begin, run, run == text.size() || (kNumbersAlone && class_at_is(text, run, CharClass::kNumber)));
}

constexpr Pretokenizer kPretokenizers[] = {
    {.name = "qwen2", .normalize_nfc = true, .piece_end = llama3_piece_end<1>},
    {.name = "deepseek-r1-qwen", .normalize_nfc = true, .piece_end = llama3_piece_end<1>},
    {.name = "llama-bpe", .whole_pieces = true, .add_bos = true, .piece_end = llama3_piece_end<3>},
    {.name = "llama3", .whole_pieces = true, .add_bos = true, .piece_end = llama3_piece_end<3>},
    {.name = "llama-v3", .whole_pieces = true, .add_bos = true, .piece_end = llama3_piece_end<3>},
    {.name = "smollm", .piece_end = gpt2_piece_end<true>},
    {.name = "gpt-2", .piece_end = gpt2_piece_end<false>},
};

}  // namespace

const Pretokenizer* find_pretokenizer(std::string_view name) {
  for (const Pretokenizer& row : kPretokenizers)
    if (row.name == name) return &row;
  return nullptr;
}

std::string pretokenizer_names() {
  std::string names;
  for (const Pretokenizer& row : kPretokenizers) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

bool is_sentencepiece(std::string_view tokenizer_model) { return tokenizer_model == "llama"; }

}  // namespace minfer
