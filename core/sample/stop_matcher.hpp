// Finds stop strings in a stream of bytes and holds back what may be the beginning of one.
// Works on bytes: tokens and UTF-8 characters may be cut anywhere. The result depends on the stream only, not on how it
// was cut into pieces. Knows nothing of tokens. Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace minfer::sample {

class StopMatcher {
 public:
  // Empty stop strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  // Takes the next bytes; returns those that can be shown now: they cannot belong to a stop string. When one is complete
  // and no other can begin before it, stopped() turns true: nothing of it or after it is ever returned.
  std::string push(std::string_view bytes);

  // The stream has ended: returns what was held back. stopped() turns true if a complete stop string was among it (it
  // waited for one that might have begun before it), and the bytes from its start on are dropped.
  std::string flush();

  bool stopped() const { return stopped_; }

 private:
  std::string release(bool at_end);

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace minfer::sample
