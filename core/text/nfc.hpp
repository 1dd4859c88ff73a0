// Unicode Normalization Form C of text that may hold bytes which are not UTF-8 (those stay as they are and end a run).
// Definition: Unicode Standard Annex #15. Character data: utf8proc.
#pragma once

#include <string>
#include <string_view>

namespace minfer {

// False when the text is certainly in NFC already: no character at or above U+0300. One pass over the bytes.
bool may_change_under_nfc(std::string_view text);

// Appends the normalised text to `out`. Time is n log n also for long runs of combining marks.
void append_nfc(std::string_view text, std::string& out);

}  // namespace minfer
