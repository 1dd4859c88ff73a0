#include "work_queue.hpp"

#include <algorithm>
#include <utility>

namespace minfer::remote {

WorkQueue::WorkQueue() : worker_([this] { loop(); }) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void WorkQueue::add(std::vector<const void*> uses, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  items_.push_back({std::move(uses), std::move(work)});
}

void WorkQueue::wait() {
  std::unique_lock lock(mutex_);
  if (items_.empty()) return;
  go_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return items_.empty(); });
  go_ = false;
  if (std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

bool WorkQueue::in_use(const void* object) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(items_.begin(), items_.end(),
                     [&](const Item& item) { return std::find(item.uses.begin(), item.uses.end(), object) != item.uses.end(); });
}

bool WorkQueue::empty() const {
  const std::lock_guard lock(mutex_);
  return items_.empty();
}

void WorkQueue::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return quit_ || (go_ && !items_.empty()); });
    if (quit_) return;
    const std::function<void()> work = items_.front().work;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) {
      failure_ = failure;
      items_.clear();
    } else {
      items_.pop_front();
    }
    if (items_.empty()) changed_.notify_all();
  }
}

}  // namespace minfer::remote
