// The machine a configuration is read on, and whether a `when:` pattern fits it. Knows no other key.
#pragma once

#include <string>
#include <string_view>

namespace minfer {

struct MachineFacts {
  std::string hostname;
  std::string os;  // linux, macos or windows
};

// The facts of this machine: the host name as gethostname gives it, unshortened; empty if it has none.
MachineFacts this_machine();

// Whole-text match, case matters: * any bytes (none too), ? one byte, everything else itself. At most pattern x text steps.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace minfer
