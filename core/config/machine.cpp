// Facts of this machine from the system, and the glob matcher (no backtracking beyond the last star).
#include "config/machine.hpp"

#include <unistd.h>

namespace minfer {

MachineFacts this_machine() {
  MachineFacts facts;
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) == 0) facts.hostname = name;
#if defined(__APPLE__)
  facts.os = "macos";
#elif defined(_WIN32)
  facts.os = "windows";
#else
  facts.os = "linux";
#endif
  return facts;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;  // the last * seen, and where the text it covers ends
  size_t covered = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      covered = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++covered;  // let the last * cover one byte more
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace minfer
