#include "runtime/token_mirror.hpp"

#include <algorithm>

namespace minfer {

size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t n = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first - a.begin());
}

void TokenMirror::push(int32_t token, std::string_view bytes) {
  tokens_.push_back(token);
  bytes_ += bytes;
  ends_.push_back(bytes_.size());
}

void TokenMirror::truncate(uint32_t n_tokens) {
  bytes_.resize(byte_end(n_tokens));
  tokens_.resize(n_tokens);
  ends_.resize(n_tokens);
}

void TokenMirror::erase(uint32_t first, uint32_t count) {
  const size_t begin = byte_end(first), n_bytes = byte_end(first + count) - begin;
  bytes_.erase(begin, n_bytes);
  tokens_.erase(tokens_.begin() + first, tokens_.begin() + first + count);
  ends_.erase(ends_.begin() + first, ends_.begin() + first + count);
  for (size_t i = first; i < ends_.size(); ++i) ends_[i] -= n_bytes;
}

uint32_t TokenMirror::tokens_within(size_t n_bytes) const {
  return static_cast<uint32_t>(std::upper_bound(ends_.begin(), ends_.end(), n_bytes) - ends_.begin());
}

bool TokenMirror::find_surplus(std::string_view wanted, size_t n_bytes, uint32_t* first, uint32_t* count) const {
  // The later the stretch begins, the more rows keep their place.
  for (uint32_t n = tokens_within(common_prefix(bytes_, wanted)) + 1; n-- > 0;) {
    const size_t begin = byte_end(n);
    if (begin + n_bytes > bytes_.size()) continue;
    const uint32_t end = tokens_within(begin + n_bytes);
    if (end <= n || byte_end(end) != begin + n_bytes) continue;
    const std::string_view left = std::string_view(bytes_).substr(begin + n_bytes), rest = wanted.substr(begin);
    const size_t compared = std::min(left.size(), rest.size());
    if (left.substr(0, compared) != rest.substr(0, compared)) continue;
    *first = n;
    *count = end - n;
    return true;
  }
  return false;
}

}  // namespace minfer
