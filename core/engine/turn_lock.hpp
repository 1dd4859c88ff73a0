// A mutex that is handed on in the order of arrival, so that a thread which takes it again at once does not starve the others.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace minfer {

// For std::lock_guard and std::unique_lock. Taking it while it is free neither waits nor allocates.
class TurnLock {
 public:
  void lock() {
    std::unique_lock guard(mutex_);
    const uint64_t mine = next_++;
    turn_.wait(guard, [&] { return mine == now_; });
  }
  void unlock() {
    {
      const std::lock_guard guard(mutex_);
      ++now_;
    }
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t next_ = 0;  // number of the next to arrive
  uint64_t now_ = 0;   // number of the one whose turn it is
};

}  // namespace minfer
