// Cuts a stream of token bytes at character borders: a token may end in the middle of a character, text on a screen may not.
// Bytes that can no longer become a character pass through unchanged.
#pragma once

#include <string>
#include <string_view>

namespace minfer {

// One per generated text; not shared between threads. Allocates nothing beyond the growth of the caller's string.
class Utf8Stream {
 public:
  // Appends to `out` all that is complete; an unfinished character (at most 3 bytes) is held back.
  void push(std::string_view bytes, std::string& out);
  // Appends what is held back, as it is. For the end of the text.
  void flush(std::string& out);

 private:
  char held_[3] = {};
  size_t held_size_ = 0;
};

}  // namespace minfer
