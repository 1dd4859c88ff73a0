#include "text/utf8_stream.hpp"

#include "base/utf8_decode.hpp"

namespace minfer {

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  const size_t begin = out.size();
  out.append(held_, held_size_);
  out.append(bytes);
  held_size_ = utf8_unfinished_tail(std::string_view(out).substr(begin));
  out.copy(held_, held_size_, out.size() - held_size_);
  out.resize(out.size() - held_size_);
}

void Utf8Stream::flush(std::string& out) {
  out.append(held_, held_size_);
  held_size_ = 0;
}

}  // namespace minfer
