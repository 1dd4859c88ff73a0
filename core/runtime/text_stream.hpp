// Token bytes on their way out: stop strings are looked for first, then whole characters are cut.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sample/stop_matcher.hpp"
#include "text/utf8_stream.hpp"

namespace minfer {

class TextStream {
 public:
  // What comes out is appended to `all` and given to on_text, if there is one; both must outlive the stream.
  TextStream(const std::vector<std::string>& stops, const std::function<void(std::string_view)>& on_text, std::string& all)
      : matcher_(stops), on_text_(on_text), all_(all) {}

  // True: a stop string is complete.
  bool push(std::string_view bytes) {
    utf8_.push(matcher_.push(bytes), ready_);
    emit();
    return matcher_.stopped();
  }
  // The end: nothing more can complete a stop string or a character.
  bool flush() {
    utf8_.push(matcher_.flush(), ready_);
    utf8_.flush(ready_);
    emit();
    return matcher_.stopped();
  }

 private:
  void emit() {
    if (ready_.empty()) return;
    all_ += ready_;
    if (on_text_) on_text_(ready_);
    ready_.clear();
  }

  sample::StopMatcher matcher_;
  Utf8Stream utf8_;
  const std::function<void(std::string_view)>& on_text_;
  std::string& all_;
  std::string ready_;
};

}  // namespace minfer
