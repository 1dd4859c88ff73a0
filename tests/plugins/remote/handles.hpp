// The numbers by which the host knows this plugin's buffers.
#pragma once

#include <map>
#include <mutex>

#include "minfer/plugin/backend.hpp"

namespace minfer::remote {

// Ends the process where the host breaks the contract: a test must not go on.
[[noreturn]] void broken_contract(const char* what);

// Odd numbers, never used twice: one that is taken for a pointer, or used after it was freed, ends the process.
class Handles {
 public:
  static Handles& all() {
    static Handles table;
    return table;
  }
  mi_buffer* add(sdk::Buffer* buffer) {
    const std::lock_guard lock(mutex_);
    next_ += 2;
    buffers_[next_] = buffer;
    return reinterpret_cast<mi_buffer*>(next_);
  }
  sdk::Buffer* find(mi_buffer* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = buffers_.find(reinterpret_cast<uintptr_t>(handle));
    if (found == buffers_.end()) broken_contract("a buffer's handle is not one that was given out");
    return found->second;
  }
  void remove(mi_buffer* handle) {
    const std::lock_guard lock(mutex_);
    buffers_.erase(reinterpret_cast<uintptr_t>(handle));
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, sdk::Buffer*> buffers_;
  uintptr_t next_ = 1;
};

}  // namespace minfer::remote
