// A list in file order with a hash index over the names of its items. Names are views: what they point into (a mapping) must
// outlive the list and stay where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace minfer::gguf {

// T has a member `std::string_view name`.
template <class T>
class NamedList {
 public:
  // False, and nothing is added, when the name is taken.
  bool add(T item) {
    if (!index_.emplace(item.name, items_.size()).second) return false;
    items_.push_back(std::move(item));
    return true;
  }

  const T* find(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &items_[found->second];
  }

  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  const T& operator[](size_t i) const { return items_[i]; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace minfer::gguf
