// The lock under which sessions take turns on devices.
#include "engine/turn_lock.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

using namespace minfer;

TEST_CASE("engine/turn_lock: turns are taken in the order of arrival") {
  TurnLock lock;
  std::vector<int> order;
  std::vector<std::thread> threads;
  lock.lock();
  std::atomic<int> arrived = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      ++arrived;
      const std::lock_guard turn(lock);
      order.push_back(i);
    });
    while (arrived <= i) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it waits
  }
  lock.unlock();
  lock.lock();  // behind all of them
  CHECK(order == std::vector<int>{0, 1, 2, 3});
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
}
