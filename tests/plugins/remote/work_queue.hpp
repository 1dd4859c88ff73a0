// A worker thread that does its work as late as it may: nothing starts before someone waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace minfer::remote {

class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // uses: objects that the work needs; see in_use.
  void add(std::vector<const void*> uses, std::function<void()> work);
  // Lets the worker do everything that was added, in order. What fails is thrown here, and what stands behind it is dropped.
  void wait();
  // True while work that has not been done needs the object.
  bool in_use(const void* object) const;
  bool empty() const;

 private:
  struct Item {
    std::vector<const void*> uses;
    std::function<void()> work;
  };
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::exception_ptr failure_;
  bool go_ = false;
  bool quit_ = false;
  std::thread worker_;
};

}  // namespace minfer::remote
