// Stop strings: the leftmost start decides; see stop_matcher.hpp.
#include "sample/stop_matcher.hpp"

#include <utility>

namespace minfer::sample {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopMatcher::push(std::string_view bytes) {
  if (stopped_) return {};
  held_ += bytes;
  return release(false);
}

std::string StopMatcher::flush() {
  if (stopped_) return {};
  return release(true);
}

// Walks over the held bytes to the first place where a stop string lies, or may yet lie when more bytes come.
std::string StopMatcher::release(bool at_end) {
  const std::string_view held = held_;
  size_t start = 0;
  for (bool undecided = false; start < held.size(); ++start) {
    const std::string_view rest = held.substr(start);
    for (const std::string& stop : stops_) {
      stopped_ = stopped_ || rest.starts_with(stop);
      undecided = undecided || (!at_end && std::string_view(stop).starts_with(rest));
    }
    if (stopped_ || undecided) break;
  }
  std::string released = held_.substr(0, start);
  held_.erase(0, stopped_ ? held_.size() : start);
  return released;
}

}  // namespace minfer::sample
