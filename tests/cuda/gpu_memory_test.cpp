// How a GPU's memory is cut from what the driver gives, by the fake driver, and what goes back
// before an allocation fails. In ctest's cuda.fake.calls.
#include "core/backend.h"
#include "core/kept_memory.h"
#include "nitinol.h"
#include "tests/cuda/replayed.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace nitinol::gpu_memory_test {

using namespace nitinol::test;

namespace {

constexpr std::size_t kilo = 1 << 10, mega = 1 << 20;
constexpr int no_memory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

std::size_t held() {
  const MemoryStatistics now = memory_statistics(gpu);
  return now.in_use + now.cached;
}

/// The blocks of a step of training: activations of each layer, which live until the way back, and
/// what is only needed for a moment.
void train_step(Backend& device, std::size_t batch) {
  constexpr std::size_t row = 64 * kilo;
  std::vector<StorageHandle> activations;
  for (std::size_t layer = 1; layer <= 50; ++layer) {
    const StorageHandle moment = device.allocate(batch * row * (layer % 5 + 1) / 2);
    activations.push_back(device.allocate(batch * row * (layer % 3 + 1) / 3));
  }
  StorageHandle gradient;
  while (!activations.empty()) {
    const StorageHandle moment = device.allocate(2 * activations.back()->bytes);
    gradient = device.allocate(activations.back()->bytes);
    activations.pop_back();
  }
}

/// Of three steps, with a result of 9 MB and temporaries.
Tensor large_steps(const Tensor& x) {
  return softmax(matmul(transpose(x), x) + sum(exp(x))) * 2;
}
/// Compiled and warm.
struct LargeSteps {
  Tensor x = reshape((arange(6000, f32) * 1e-4).to(gpu), {4, 1500});
  Tensor expected = large_steps(x).to(Device{});
  decltype(compile(large_steps)) f = compile(large_steps, {.check = Check::never});
  LargeSteps() { warm_up(f, x); }
};

}  // namespace

TEST_CASE("blocks of up to 16 MB are cut from segments", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  Backend& device = backend(gpu);
  device.release_cached_memory();
  const uint64_t asked = calls_of("cuMemAlloc_v2"), blocks = driver->counts().blocks;
  const std::size_t before = held();
  std::vector<StorageHandle> all;
  std::size_t bytes = 0;
  for (std::size_t i = 1; i <= 16; ++i) {
    for (const std::size_t size : {i * mega, i * 600 * kilo}) {
      all.push_back(device.allocate(size));
      bytes += size;
      CHECK(reinterpret_cast<uintptr_t>(all.back()->data) % 256 == 0);
    }
  }
  // They fill segments but for an eighth, by which classes differ, and what is left at their ends.
  CHECK(calls_of("cuMemAlloc_v2") - asked <= bytes / (32 * mega) + 3);
  CHECK(held() - before <= bytes + bytes / 8 + 64 * mega);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const auto* const one = static_cast<const std::byte*>(all[i]->data);
      const auto* const other = static_cast<const std::byte*>(all[k]->data);
      CHECK((one + all[i]->bytes <= other || other + all[k]->bytes <= one));
    }
  }
  // And go back when nothing is cut from them.
  const StorageHandle last = all.back();
  all.clear();
  device.release_cached_memory();
  CHECK(driver->counts().blocks == blocks + 1);
  CHECK(held() - before == 32 * mega);
}

TEST_CASE("small blocks' segments go back, too", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  Backend& device = backend(gpu);
  device.release_cached_memory();
  const uint64_t blocks = driver->counts().blocks;
  const std::size_t before = held();
  std::vector<StorageHandle> all;
  // More than what lives of other cases leaves room for in its segments.
  for (std::size_t i = 0; i < 400; ++i) all.push_back(device.allocate((100 + i % 100) * kilo));
  CHECK(driver->counts().blocks >= blocks + 3);
  all.clear();
  device.release_cached_memory();
  CHECK(driver->counts().blocks == blocks);
  CHECK(held() == before);
}

TEST_CASE("steps of varying batches come to hold little more than the largest needs",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Backend& device = backend(gpu);
  reset_peak_memory(gpu);
  const MemoryStatistics before = memory_statistics(gpu);
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same in each run
  for (int step = 0; step < 200; ++step) train_step(device, 10 + random() % 60);
  const MemoryStatistics then = memory_statistics(gpu);
  const std::size_t most = then.peak - before.in_use, more = held() - before.in_use - before.cached;
  std::printf("200 steps: %zu MB at most in use, %zu MB held, %llu calls of the driver\n",
              most / mega, more / mega,
              static_cast<unsigned long long>(then.system_allocations - before.system_allocations));
  CHECK(more <= most + most / 4 + 64 * mega);  // 843 MB more if released blocks did not join
  // In a steady state nobody asks the driver, and equal steps find the same addresses.
  for (int step = 0; step < 200; ++step) train_step(device, 10 + random() % 60);
  CHECK(memory_statistics(gpu).system_allocations == then.system_allocations);
  const auto address = [&] { return device.allocate(5 * mega)->data; };
  const void* const at = address();
  for (const std::size_t batch : {11, 69, 40}) {
    train_step(device, batch);
    CHECK(address() == at);
  }
}

TEST_CASE("what is short of memory gets what Plans and their graphs keep", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Backend& device = backend(gpu);
  const LargeSteps large;
  const auto& [x, expected, f] = large;
  device.release_cached_memory();
  const uint64_t graphs = live_graphs();
  const MemoryStatistics before = device.memory();
  device.set_memory_budget(before.in_use + before.cached);
  {
    const StorageHandle block = device.allocate(17 * mega);
    CHECK(live_graphs() < graphs);
    CHECK(device.memory().in_use - block->bytes <= before.in_use - 17 * mega);
  }
  const std::string error = error_of([&] { static_cast<void>(device.allocate(64 * mega)); });
  CHECK(has(error, "it is beyond the budget"));
  device.set_memory_budget(0);
  for (int call = 0; call < 8; ++call) CHECK(same_bits(f(x).to(Device{}), expected));
  CHECK(replays_of(f).made == 2);
  CHECK(live_graphs() == graphs);
}

TEST_CASE("a result that somebody holds stays when memory is short", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Backend& device = backend(gpu);
  const LargeSteps large;
  const auto& [x, expected, f] = large;
  const Tensor result = f(x);
  KeptMemory::give_back_all(device);
  std::vector<Tensor> others;
  for (int i = 0; i < 3; ++i) others.push_back(full({1500, 1500}, -1, f32, gpu));
  const Tensor next = f(x);
  CHECK(same_bits(result.to(Device{}), expected));
  CHECK(same_bits(next.to(Device{}), expected));
  for (const Tensor& each : others) CHECK(max(each).item<float>() == -1);
}

TEST_CASE("a device without more memory is asked again when all has gone back",
          "[.little-memory]") {
  REQUIRE(fake());
  Backend& device = backend(gpu);
  const auto fill = [&](std::size_t bytes) {
    std::vector<StorageHandle> all;
    while (error_of([&] { all.push_back(device.allocate(bytes)); }).empty()) {
    }
    return all;
  };
  device.release_cached_memory();
  constexpr std::size_t room = 90 * mega;  // of 100 MB
  for (const std::size_t bytes : {300 * kilo, 700 * kilo, 5 * mega, 12 * mega, 20 * mega}) {
    INFO(bytes);
    CHECK(fill(bytes).size() * bytes >= room * 7 / 10);
    CHECK(device.allocate(room)->bytes == room);
  }
  // Half of the blocks leave room beside each other.
  std::vector<StorageHandle> all = fill(5 * mega);
  all.resize(all.size() / 2);
  CHECK(device.allocate(32 * mega)->bytes == 32 * mega);
}

TEST_CASE("memory of a small device is used to its end", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("NITINOL_FAKE_MEMORY=104857600", "[.little-memory]");
  INFO(run.output);
  CHECK(has(run.output, "All tests passed"));
}

TEST_CASE("a refused segment is asked for as the block alone, and then again",
          "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  Backend& device = backend(gpu);
  device.release_cached_memory();
  const auto refuse = [&](uint64_t calls) {  // each counts those that are not refused before it
    for (uint64_t call = 0; call < calls; ++call) driver->fail("cuMemAlloc_v2", 1, no_memory);
  };
  std::vector<StorageHandle> all;
  while (device.memory().cached >= 16 * mega) all.push_back(device.allocate(mega));
  for (const uint64_t refused : {1, 2, 4}) {
    const uint64_t asked = calls_of("cuMemAlloc_v2");
    refuse(refused);
    all.push_back(device.allocate(15 * mega));
    CHECK(calls_of("cuMemAlloc_v2") == asked + refused + 1);
    while (device.memory().cached >= 16 * mega) all.push_back(device.allocate(mega));
  }
  refuse(6);
  CHECK(has(error_of([&] { all.push_back(device.allocate(15 * mega)); }), "device has no more"));
  driver->fail("cuMemAlloc_v2", 0, 0);
}

}  // namespace nitinol::gpu_memory_test
