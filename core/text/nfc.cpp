#include "text/nfc.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/utf8_decode.hpp"

namespace minfer {
namespace {

// Characters below U+0300 are in NFC by themselves and never combine with what stands before them,
// so the text may be cut in front of each of them.
constexpr uint32_t kFirstCombining = 0x300;
constexpr uint8_t kLeadOfFirstCombining = 0xCC;

utf8proc_propval_t combining_class(int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

// Decompose, order the marks, compose. utf8proc_map would do the same, but it orders marks by exchanging neighbours:
// quadratic on a text made of marks.
void append_normalized_run(std::string_view run, std::vector<int32_t>& chars, std::string& out) {
  chars.clear();
  for (size_t pos = 0; pos < run.size();) {
    const Utf8Char c = utf8_at(run, pos);
    pos += c.size;
    int32_t decomposed[32];  // the longest canonical decomposition has 4 characters
    int last_boundclass = 0;
    const auto n = utf8proc_decompose_char(static_cast<int32_t>(c.code_point), decomposed, 32,
                                           static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &last_boundclass);
    chars.insert(chars.end(), decomposed, decomposed + std::clamp<utf8proc_ssize_t>(n, 0, 32));
  }
  for (auto begin = chars.begin(); begin != chars.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, chars.end(), [](int32_t c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end, [](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
  const auto n_composed = utf8proc_normalize_utf32(chars.data(), static_cast<utf8proc_ssize_t>(chars.size()),
                                                   static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  for (utf8proc_ssize_t i = 0; i < n_composed; ++i) {
    utf8proc_uint8_t bytes[4];
    const auto size = utf8proc_encode_char(chars[static_cast<size_t>(i)], bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
}

}  // namespace

bool may_change_under_nfc(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) >= kLeadOfFirstCombining; });
}

void append_nfc(std::string_view text, std::string& out) {
  std::vector<int32_t> scratch;
  size_t run_begin = 0;
  const auto end_run = [&](size_t end) {
    const std::string_view run = text.substr(run_begin, end - run_begin);
    if (may_change_under_nfc(run))
      append_normalized_run(run, scratch, out);
    else
      out.append(run);
    run_begin = end;
  };
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = utf8_at(text, pos);
    if (c.code_point == kIllFormed) {
      end_run(pos);
      out.push_back(text[pos]);
      run_begin = pos + 1;
    } else if (c.code_point < kFirstCombining) {
      end_run(pos);
    }
    pos += c.size;
  }
  end_run(text.size());
}

}  // namespace minfer
