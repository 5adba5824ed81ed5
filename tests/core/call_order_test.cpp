#include "core/call_order.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace std::chrono_literals;

TEST_CASE("a thread that takes an order again and again does not keep it from others",
          "[core][order][threads]") {
  CallOrder order;
  std::atomic<bool> is_running = false, is_done = false;
  std::thread greedy([&] {
    while (!is_done) {
      order.lock();
      is_running = true;
      std::this_thread::sleep_for(500us);
      order.unlock();
    }
  });
  std::atomic<int> refused = 0;
  const auto others = [&] {
    for (int i = 0; i < 200; ++i) {
      if (order.lock_within(CallOrder::patience / 4))
        order.unlock();
      else
        ++refused;
      std::this_thread::sleep_for(300us);
    }
  };
  while (!is_running) std::this_thread::yield();
  std::thread first(others), second(others);
  first.join();
  second.join();
  is_done = true;
  greedy.join();
  CHECK(refused == 0);
}

TEST_CASE("an order is one thread's at a time", "[core][order][threads]") {
  CallOrder order;
  int64_t count = 0;  // no atomic: only who owns the order touches it
  std::atomic<int> given_up = 0, strangers = 0;
  const auto work = [&](bool is_patient) {
    for (int i = 0; i < 3000; ++i) {
      if (is_patient)
        order.lock();
      else if (!order.lock_within(i % 7 == 0 ? 0ms : 100ms)) {
        ++given_up;
        continue;
      }
      strangers += order.is_mine() ? 0 : 1;
      ++count;
      order.unlock();
      if (i % 64 == 0) std::this_thread::yield();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) threads.emplace_back(work, i % 2 == 0);
  for (std::thread& thread : threads) thread.join();
  CHECK(count + given_up == 6 * 3000);
  CHECK(strangers == 0);
  CHECK(!order.is_mine());
}

TEST_CASE("who waits for an order waits no longer than was said", "[core][order][threads]") {
  CallOrder order;
  order.lock();
  CHECK(order.is_mine());
  bool was_mine = true, was_early = true, was_given = false;
  std::thread other([&] {
    was_mine = order.is_mine();
    was_early = order.lock_within(5ms);
    was_given = order.lock_within(10s);
    order.unlock();
  });
  std::this_thread::sleep_for(30ms);
  order.unlock();
  other.join();
  CHECK(!was_mine);
  CHECK(!was_early);
  CHECK(was_given);
  order.lock();
  order.unlock();
}
