#include "core/fork.h"

#include "core/executables.h"
#include "core/kernel.h"
#include "core/library.h"
#include "core/log.h"
#include "nitinol.h"
#include "tests/backends/kernels.h"
#include "tests/in_child.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;
using test::in_child;

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not follow threads into a fork

namespace {

/// Threads that run `body` again and again until they are told to stop.
class Busy {
 public:
  template <class Body>
  Busy(int count, Body body) {
    for (int t = 0; t < count; ++t) {
      threads_.emplace_back([this, body, t] {
        for (int i = 0; !stop_; ++i) body(t, i);
      });
    }
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

Kernel kernel_number(uint64_t number) {
  Kernel kernel = test::reduction(Combine::add, f32, f32, Order::lanes);
  kernel.stages[0].program.instrs.push_back(
      {.op = ScalarOp::constant, .type = ScalarType::f32, .imm = number});
  return kernel;
}

}  // namespace

TEST_CASE("a fork waits for what must not be cut in half", "[core][fork][no-isa]") {
  std::atomic<bool> is_inside = false, is_done = false;
  std::thread other([&] {
    const NoFork outer;
    const NoFork inner;
    is_inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    is_done = true;
  });
  while (!is_inside) std::this_thread::yield();
  CHECK(in_child([&] { return is_done ? 0 : 1; }) == 0);
  other.join();
}

TEST_CASE("a thread may fork inside its own NoFork, and the child goes on",
          "[core][fork][no-isa]") {
  std::optional<NoFork> scope(std::in_place);
  CHECK(in_child([&] {
          scope.reset();
          const NoFork again;
          return in_child([] { return 0; });
        }) == 0);
  CHECK(in_child([&] { return in_child([] { return 7; }); }) == 7);
}

TEST_CASE("a mutex that other threads hold in turn is free in every child",
          "[core][fork][no-isa]") {
  ForkSafeMutex first, second;
  // A fork waits for a moment in which none of them has begun a round.
  const auto wait = [](int us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); };
  const Busy busy(3, [&](int t, int) {
    {
      const std::scoped_lock outer(t == 0 ? first : second);
      wait(50);
      const NoFork no_fork;  // which may be entered with a mutex held
    }
    wait(500);
  });
  for (int i = 0; i < 20; ++i) {
    REQUIRE(in_child([&] {
              const bool are_free = first.try_lock() && second.try_lock();
              return are_free ? 0 : 1;
            }) == 0);
  }
}

TEST_CASE("children use the caches, the log and memory while threads of the parent do",
          "[core][fork][no-isa]") {
  set_log_sink([](LogLevel, std::string_view) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  });
  {
    const Busy busy(2, [&](int t, int i) {
      const auto number = static_cast<uint64_t>(i) * 3 + static_cast<uint64_t>(t);
      static_cast<void>(executable_for(backend(Device{}), kernel_number(number % 20)));
      log(LogLevel::warning, "busy");
      static_cast<void>(exp(ones({100'000 + 1000 * (i % 7)})));
      if (i % 20 == 0) clear_executables();
    });
    for (uint64_t i = 0; i < 15; ++i) {
      REQUIRE(in_child([&] {
                for (uint64_t k = 0; k < 20; k += 3) {
                  static_cast<void>(executable_for(backend(Device{}), kernel_number(k)));
                }
                log(LogLevel::warning, "child");
                clear_executables();
                const Tensor x = exp(zeros({200'000}));
                return sum(matmul(ones({3, 4}), ones({4, 3}))).item<float>() == 36 &&
                               x.data<float>()[7] == 1
                           ? 0
                           : 1;
              }) == 0);
    }
  }
  set_log_sink(nullptr);
}

#endif
