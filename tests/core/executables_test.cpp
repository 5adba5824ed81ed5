#include "core/executables.h"

#include "core/error.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <atomic>
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
  const auto first = executable_for(reference_device, numbered(100));
  CHECK(executable_for(reference_device, numbered(100)) == first);
  CHECK(executable_statistics().prepared == before + 1);
  CHECK(executable_for(reference_device, numbered(101)) != first);
  CHECK(executable_for(Device{}, numbered(100)) != first);
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
        mine = executable_for(reference_device, numbered(200 + round));
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
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(executable_for(reference_device, wrong), Error);
  CHECK(executable_statistics().entries == before.entries);
  CHECK(executable_statistics().prepared == before.prepared + 2);
}

TEST_CASE("the least recently used entry goes first, and its users keep it", "[executables]") {
  clear_executables();
  set_executable_limit(2);
  const auto first = executable_for(reference_device, numbered(1));
  const auto second = executable_for(reference_device, numbered(2));
  CHECK(executable_for(reference_device, numbered(1)) == first);
  const auto third = executable_for(reference_device, numbered(3));
  CHECK(executable_statistics().entries == 2);
  CHECK(executable_for(reference_device, numbered(1)) == first);
  CHECK(executable_for(reference_device, numbered(2)) != second);
  set_executable_limit(4096);
  clear_executables();
  CHECK(executable_statistics().entries == 0);
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

TEST_CASE("a device that does not exist is an error", "[executables]") {
  CHECK_THROWS_AS(executable_for({.kind = Device::Kind::cpu, .index = 3}, numbered(1)), Error);
}
