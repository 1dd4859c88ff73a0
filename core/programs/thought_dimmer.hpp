// Dims what stands between <think> and </think> in a reply on its way to a terminal, however the text is cut into pieces.
#pragma once

#include <string>
#include <string_view>

namespace minfer::programs {

class ThoughtDimmer {
 public:
  // What can be shown now.
  std::string push(std::string_view piece) {
    held_ += piece;
    std::string out;
    while (true) {
      const std::string_view tag = inside_ ? "</think>" : "<think>";
      const size_t at = held_.find(tag);
      if (at == std::string::npos) break;
      const size_t end = at + tag.size();
      out += held_.substr(0, at);
      if (!inside_) out += kDim;
      out += tag;
      if (inside_) out += kNormal;
      held_.erase(0, end);
      inside_ = !inside_;
    }
    // The beginning of a tag waits for the rest of it.
    const std::string_view tag = inside_ ? "</think>" : "<think>";
    size_t n = std::min(held_.size(), tag.size() - 1);
    while (n > 0 && held_.compare(held_.size() - n, n, tag.substr(0, n)) != 0) --n;
    out += held_.substr(0, held_.size() - n);
    held_.erase(0, held_.size() - n);
    return out;
  }
  // The end of a reply: everything, and the terminal as it was.
  std::string flush() {
    std::string out = std::move(held_);
    held_.clear();
    if (inside_) out += kNormal;
    inside_ = false;
    return out;
  }

 private:
  static constexpr std::string_view kDim = "\x1b[2m", kNormal = "\x1b[0m";
  std::string held_;
  bool inside_ = false;
};

}  // namespace minfer::programs
