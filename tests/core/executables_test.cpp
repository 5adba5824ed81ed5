#include "core/executables.h"

#include "core/error.h"
#include "core/kernel.h"
#include "core/library.h"
#include "nitinol.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

using namespace nitinol;

namespace {

/// A kernel that nobody else prepares: `number` is a constant in it.
Kernel numbered(uint64_t number) {
  Kernel kernel = test::reduction(Combine::add, f32, f32, Order::lanes);
  kernel.stages[0].program.instrs.push_back(
      {.op = ScalarOp::constant, .type = ScalarType::f32, .imm = number});
  return kernel;
}

constexpr Device reference_device = {.kind = Device::Kind::reference, .index = 0};

}  // namespace

TEST_CASE("a step is prepared once", "[executables]") {
  const uint64_t before = executable_statistics().prepared;
  const auto first = executable_for(backend(reference_device), numbered(100));
  CHECK(known_executable(backend(reference_device), numbered(100)) == first);
  CHECK(known_executable(backend(reference_device), numbered(99)) == nullptr);
  bool was_there = false;
  CHECK(executable_for(backend(reference_device), numbered(100), &was_there) == first);
  CHECK(was_there);
  CHECK(executable_statistics().prepared == before + 1);
  static_cast<void>(executable_for(backend(reference_device), numbered(102), &was_there));
  CHECK_FALSE(was_there);
  CHECK(executable_for(backend(reference_device), numbered(101)) != first);
  CHECK(executable_for(backend(Device{}), numbered(100)) != first);
}

TEST_CASE("16 threads that ask together prepare once", "[executables]") {
  for (uint64_t round = 0; round < 20; ++round) {
    const uint64_t before = executable_statistics().prepared;
    std::atomic<int> ready = 0;
    std::vector<std::shared_ptr<const Executable>> found(16);
    std::vector<std::thread> threads;
    for (auto& mine : found) {
      threads.emplace_back([&ready, &mine, round] {
        ++ready;
        while (ready < 16) std::this_thread::yield();
        mine = executable_for(backend(reference_device), numbered(200 + round));
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(executable_statistics().prepared == before + 1);
    for (const auto& mine : found) CHECK(mine == found[0]);
  }
}

TEST_CASE("a failed preparation leaves no entry", "[executables]") {
  const Kernel wrong = test::reduction(Combine::logical_or, f32, f32, Order::lanes);
  const ExecutableStatistics before = executable_statistics();
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_AS(executable_for(backend(reference_device), wrong), Error);
  CHECK(executable_statistics().entries == before.entries);
  CHECK(executable_statistics().prepared == before.prepared + 2);
}

namespace {

/// Sets the limit, and puts back the one before.
class Limit {
 public:
  explicit Limit(std::size_t bytes) : before_(executable_statistics().limit) {
    set_executable_limit(bytes);
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() { set_executable_limit(before_); }

 private:
  std::size_t before_;
};

}  // namespace

TEST_CASE("the least recently used entry goes first, and its users keep it", "[executables]") {
  clear_executables();
  const auto first = executable_for(backend(reference_device), numbered(1));
  const std::size_t bytes = executable_statistics().bytes;
  CHECK(bytes > sizeof(Kernel));
  const Limit limit(2 * bytes);
  const uint64_t evicted = executable_statistics().evicted;
  const auto second = executable_for(backend(reference_device), numbered(2));
  CHECK(executable_for(backend(reference_device), numbered(1)) == first);
  const auto third = executable_for(backend(reference_device), numbered(3));
  CHECK(executable_statistics().entries == 2);
  CHECK(executable_statistics().evicted == evicted + 1);
  CHECK(executable_statistics().bytes == 2 * bytes);
  CHECK(executable_for(backend(reference_device), numbered(1)) == first);
  CHECK(executable_for(backend(reference_device), numbered(2)) != second);
  set_executable_limit(0);  // the latest stays
  CHECK(executable_statistics().entries == 1);
  CHECK(executable_statistics().bytes == bytes);
  clear_executables();
  CHECK(executable_statistics().entries == 0);
  CHECK(executable_statistics().bytes == 0);
  std::vector<float> x = {1, 2, 3};
  float sum = 0;
  std::vector<void*> buffers = {x.data(), &sum};
  std::vector<int64_t> sizes = {3}, strides = {1, 0};
  first->launch({.buffers = buffers,
                 .sizes = sizes,
                 .strides = strides,
                 .offsets = {},
                 .scalars = {},
                 .status = nullptr,
                 .threads = 1});
  CHECK(sum == 6);
}

TEST_CASE("bytes of an entry that is evicted while it is prepared are not counted",
          "[executables]") {
  clear_executables();
  const Limit limit(1);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (uint64_t i = 0; i < 50; ++i) {
        static_cast<void>(executable_for(backend(reference_device), numbered(1000 + 50 * t + i)));
        if (i % 10 == 0) clear_executables();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(executable_statistics().entries <= 1);
  clear_executables();
  CHECK(executable_statistics().bytes == 0);
}

TEST_CASE("products of ever new shapes stay within the limit, and count what they take",
          "[executables]") {
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    std::size_t size = 0, pages = 0;
    file >> size >> pages;
    return pages * 4096;
  };
  const auto multiply = [](int64_t i) {
    return matmul(ones({3 + i % 20, 5 + i / 20}), ones({5 + i / 20, 2 + i % 20}));
  };
  clear_executables();
  for (int64_t i = 0; i < 100; ++i) static_cast<void>(multiply(i));
  const std::size_t bytes = executable_statistics().bytes, before = resident();
  for (int64_t i = 100; i < 300; ++i) static_cast<void>(multiply(i));
  const std::size_t counted = executable_statistics().bytes - bytes;
  CHECK(counted >= std::size_t{200} * 60'000);  // 200 of 64 KiB and some scratch
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const std::size_t taken = resident() - std::min(before, resident());
  CHECK(taken < 2 * counted);
#else
  static_cast<void>(before);
#endif
  const Limit limit(std::size_t{4} << 20);
  for (int64_t i = 0; i < 100; ++i) static_cast<void>(multiply(i));
  CHECK(executable_statistics().bytes <= std::size_t{4} << 20);
  CHECK(executable_statistics().entries < 70);
}

TEST_CASE("clear_executables reaches what threads have at hand", "[executables]") {
  const Tensor x = ones({3});
  static_cast<void>(x + 1);
  const uint64_t prepared = executable_statistics().prepared;
  static_cast<void>(x + 1);
  CHECK(executable_statistics().prepared == prepared);
  clear_executables();
  CHECK(executable_statistics().entries == 0);
  static_cast<void>(x + 1);
  CHECK(executable_statistics().prepared > prepared);
  std::atomic<int> step = 0;
  uint64_t before = 0, after = 0;
  std::thread other([&] {
    static_cast<void>(x + 1);
    step = 1;
    step.notify_all();
    step.wait(1);
    before = executable_statistics().prepared;
    static_cast<void>(x + 1);
    after = executable_statistics().prepared;
  });
  step.wait(0);
  clear_executables();
  step = 2;
  step.notify_all();
  other.join();
  CHECK(after > before);
}

TEST_CASE("a device that does not exist is an error", "[executables]") {
  CHECK_THROWS_AS(executable_for(backend({.kind = Device::Kind::cpu, .index = 3}), numbered(1)),
                  Error);
}
