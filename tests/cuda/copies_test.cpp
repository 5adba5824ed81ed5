// Copies from the host beside a GPU's work, and from GPU to GPU, by the fake driver.
#include "backends/cuda/runtime/libraries.h"
#include "core/backend.h"
#include "core/host_access.h"
#include "eager/launch.h"
#include "nitinol.h"
#include "tests/cuda/using_fake.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

constexpr Device other = {.kind = Device::Kind::cuda, .index = 1};
constexpr int64_t size = 1 << 19;  // 2 MB: by the stream of copies

Tensor batch(int i) {
  return full({size}, i, f32, Device{});
}

/// Whether all elements are that.
bool is_full_of(const Tensor& x, float value) {
  return min(x).item<float>() == value && max(x).item<float>() == value;
}

/// Whether streams of copies do at once what they can: what they have not done waits for work.
bool is_early() {
  const char* const set = std::getenv("NITINOL_FAKE_EARLY");
  return set != nullptr && std::string_view(set) == "1";
}

/// Asked of the device's own stream, and not yet done.
uint64_t queued_work() {
  const FakeCounts counts = fake()->counts();
  return counts.queued - counts.queued_beside;
}

}  // namespace

TEST_CASE("what makes a tensor writes into pinned memory, which is used again",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Spec spec = {.dtype = f32, .shape = {size}, .device = gpu};
  std::vector<const void*> places;
  const auto made = [&](float value) {
    return filled_tensor(spec, [&](std::span<std::byte> bytes) {
      REQUIRE(bytes.size() == size * sizeof(float));
      places.push_back(bytes.data());
      std::fill_n(reinterpret_cast<float*>(bytes.data()), size, value);
    });
  };
  REQUIRE(is_full_of(made(1), 1));
  places.clear();
  std::vector<Tensor> all;
  const uint64_t pinned = fake()->counts().pinned;
  for (int i = 0; i < 12; ++i) all.push_back(made(static_cast<float>(i)));
  for (int i = 0; i < 12; ++i)
    CHECK(is_full_of(all[static_cast<std::size_t>(i)], static_cast<float>(i)));
  CHECK(std::set(places.begin(), places.end()).size() <= 4);
  CHECK(fake()->counts().pinned <= pinned + 4);
  // One that throws gives its buffer back.
  const uint64_t then = fake()->counts().pinned;
  for (int i = 0; i < 10; ++i) {
    CHECK_THROWS_AS(
        filled_tensor(spec, [](std::span<std::byte>) { throw std::runtime_error("no"); }),
        std::runtime_error);
  }
  CHECK(is_full_of(made(3), 3));
  CHECK(fake()->counts().pinned == then);
  // One that makes another meanwhile.
  Tensor inner;
  const Tensor outer = filled_tensor(spec, [&](std::span<std::byte> bytes) {
    std::fill_n(reinterpret_cast<float*>(bytes.data()), size, 7.0F);
    inner = made(8);
  });
  CHECK(is_full_of(outer, 7));
  CHECK(is_full_of(inner, 8));
  CHECK(filled_tensor({.dtype = f32, .shape = {0}, .device = gpu}, [](auto) {}).size() == 0);
}

TEST_CASE("two GPUs do not mix, and copy to each other", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("NITINOL_TEST_DEVICE= NITINOL_FAKE_DEVICES=2", "[.two-gpus]");
  INFO(run.output);
  CHECK(has(run.output, "All tests passed"));
}

TEST_CASE("computes on two GPUs", "[.two-gpus]") {
  REQUIRE(devices().size() >= 3);
  const Tensor x = numbers(gpu), y = numbers(other), host = numbers(Device{});
  const auto f = [](const Tensor& v) { return softmax(matmul(v, transpose(v)) + sum(v)); };
  const Tensor expected = f(host);
  const auto compiled = compile(f);
  for (int i = 0; i < 6; ++i) {
    for (const Tensor& v : {x, y}) {
      CHECK(max(abs(f(v).to(Device{}) - expected)).item<float>() < 1e-5F);
      CHECK(same_bits(compiled(v).to(Device{}), f(v).to(Device{})));
    }
  }
  // Whose context is another one has it back.
  const cuda::Driver& driver = cuda::driver();
  cuda::Driver::Context theirs = nullptr, now = nullptr;
  REQUIRE(driver.cuDevicePrimaryCtxRetain(&theirs, other.index) == 0);
  REQUIRE(driver.cuCtxSetCurrent(theirs) == 0);
  CHECK(same_bits(compiled(x).to(Device{}), f(x).to(Device{})));
  CHECK(driver.cuCtxGetCurrent(&now) == 0);
  CHECK(now == theirs);
  clear_executables();
  CHECK(driver.cuCtxGetCurrent(&now) == 0);
  CHECK(now == theirs);
  const std::string error = error_of([&] { static_cast<void>(x + y); });
  CHECK(has(error, "cuda:0"));
  CHECK(has(error, "cuda:1"));
  CHECK(same_bits((x * 2).to(other).to(Device{}), host * 2));
  // Between devices nothing is waited for or goes through the host, and what is released or made
  // anew at once does not meet the copy.
  const auto counts = fake()->counts;
  const FakeCounts before = counts();
  std::vector<Tensor> there;
  for (int i = 0; i < 8; ++i) {
    Tensor here = transpose(numbers(gpu) * i);
    there.push_back(here.to(other) + 1);
    here = Tensor();
    there.push_back((full({4, 3}, -1, f32, gpu) * i).to(other));
    there.back() = there.back().to(gpu) * 2;
  }
  CHECK(counts().waits == before.waits);
  CHECK(counts().downloaded == before.downloaded);
  CHECK(counts().peers_by_host == 0);
  for (int i = 0; i < 8; ++i) {
    const auto at = static_cast<std::size_t>(2 * i);
    CHECK(same_bits(there[at].to(Device{}), copy(transpose(host * i) + 1)));
    CHECK(same_bits(there[at + 1].to(Device{}), full({4, 3}, -2, f32) * i));
  }
  fake()->fail("cuMemcpyPeerAsync", 1, 999);
  CHECK(has(error_of([&] { static_cast<void>(x.to(other)); }), "copying between devices"));
  for (const int call : {1, 2}) {
    fake()->fail("cuStreamWaitEvent", static_cast<uint64_t>(call), 999);
    CHECK(has(error_of([&] { static_cast<void>(x.to(other)); }), "copying between devices"));
    CHECK(same_bits(x.to(other).to(Device{}), host));
  }
  CHECK(has(error_of([] {
              static_cast<void>(zeros({1}, f32, {Device::Kind::cuda, 2}));
            }),
            "the driver sees 2 devices"));
  CHECK(has(error_of([&] { static_cast<void>(x.to({Device::Kind::cuda, 2})); }), "cuda:2"));
}

TEST_CASE("GPUs that cannot read each other's memory copy to each other", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self(
      "NITINOL_TEST_DEVICE= NITINOL_FAKE_DEVICES=2 NITINOL_FAKE_FAIL=cuCtxEnablePeerAccess:1:217",
      "[.distant-gpus]");
  INFO(run.output);
  CHECK(has(run.output, "All tests passed"));
}

TEST_CASE("copies by the driver's own way", "[.distant-gpus]") {
  for (int i = 0; i < 2; ++i)
    CHECK(same_bits(numbers(gpu).to(other).to(Device{}), numbers(Device{})));
  CHECK(fake()->counts().peers_by_host == 2 * 12 * sizeof(float));
}

TEST_CASE("large copies from the host go beside a GPU's work, and neither overtakes the other",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  for (const char* const when : {"NITINOL_FAKE_EARLY=0", "NITINOL_FAKE_EARLY=1"}) {
    const Run run = run_self(std::string("NITINOL_TEST_DEVICE= ") + when, "[.copies-beside]");
    INFO(when << "\n" << run.output);
    CHECK(has(run.output, "All tests passed"));
  }
}

TEST_CASE("copies while it computes", "[.copies-beside]") {
  const auto counts = fake()->counts;
  Tensor sum_of_all = zeros({size}, f32, gpu);
  static_cast<void>(sum_of_all.to(Device{}));
  const uint64_t before = counts().waits;
  float expected = 0;
  for (int i = 1; i <= 12; ++i) {
    // Each batch goes into a block that work still queued reads, or has read.
    const Tensor x = batch(i).to(gpu), y = batch(-i).to(gpu);
    sum_of_all = sum_of_all + x * 2.0 + y;
    expected += static_cast<float>(i);
  }
  // Only pinned memory is waited for: two batches a step, four buffers.
  CHECK(counts().waits - before <= 12 * 2);
  CHECK(min(sum_of_all).item<float>() == expected);
  CHECK(max(sum_of_all).item<float>() == expected);
  // Into a block that no copy has filled before, and whose work is still queued.
  Tensor other = full({2 * size}, 7, f32, gpu);
  other = Tensor();
  CHECK(max(full({2 * size}, 5, f32, Device{}).to(gpu)).item<float>() == 5);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Tensor all = zeros({size}, f32, gpu);
      for (int i = 0; i < 8; ++i) all = all + batch(10 * t + i).to(gpu);
      if (min(all).item<float>() == static_cast<float>(80 * t + 28)) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 2);
}

TEST_CASE("a batch is copied while the device computes with the one before", "[.copies-beside]") {
  constexpr int64_t rows = 16, batches = 16;
  const Tensor images = reshape(arange(batches * rows, f32, Device{}), {batches * rows, 1}) *
                        ones({1, size / rows}, f32, Device{});
  const auto counts = fake()->counts;
  Backend& device = backend(gpu);
  Tensor sum_of_all = zeros({}, f32, gpu);
  static_cast<void>((sum_of_all + sum(full({rows, size / rows}, 1, f32, gpu))).item<float>());
  device.release_cached_memory();
  nn::DataLoader loader({images, arange(batches * rows, i64, Device{})},
                        {.batch = rows, .is_shuffled = false, .device = gpu});
  for (int pass = 0; pass < 2; ++pass) {
    const uint64_t begun = queued_work(), blocks = device.memory().system_allocations;
    uint64_t of_step = 0;
    int64_t i = 0;
    for (const nn::Batch& each : loader) {
      INFO("pass " << pass << ", batch " << i);
      // The first ones wait for nothing; then each for a step some way back.
      const uint64_t queued = queued_work() - begun;
      if (i < 4) {
        if (is_early()) CHECK(counts().queued_beside == 0);
        CHECK(queued >= static_cast<uint64_t>(i) * of_step);
      }
      CHECK(queued >= 3 * std::min<uint64_t>(of_step, i < 4 ? 0 : of_step));
      const uint64_t before = queued_work();
      sum_of_all = sum_of_all + sum(each[0]) + sum(each[1].to(f32));
      of_step = queued_work() - before;
      ++i;
    }
    if (pass > 0) CHECK(device.memory().system_allocations == blocks);
    // By the host's order: 2^15 elements of each number, and it once more.
    constexpr double numbers_once = batches * rows * (batches * rows - 1) / 2.0;
    CHECK(sum_of_all.item<float>() ==
          Approx((pass + 1) * numbers_once * (size / rows + 1)).epsilon(1e-5));
  }
}

TEST_CASE("a large copy does not wait for small ones that are behind work", "[.copies-beside]") {
  const Tensor x = zeros({size}, f32, gpu);
  static_cast<void>((x + 1).to(Device{}));
  const Tensor y = x + 1;
  std::vector<Tensor> small;
  for (int i = 0; i < 4; ++i) small.push_back(full({8}, i, f32, Device{}).to(gpu));
  const uint64_t queued = queued_work();
  const Tensor large = full({4 * size}, 3, f32, Device{}).to(gpu);
  CHECK(queued_work() == queued + 1);  // which waits for the copy
  CHECK(is_full_of(large, 3));
  CHECK(is_full_of(small[3], 3));
  CHECK(is_full_of(y, 1));
}

TEST_CASE("a copy into memory that is in use waits for its use", "[.copies-beside]") {
  constexpr std::size_t bytes = size * sizeof(float);
  Backend& device = backend(gpu);
  const std::vector<float> ones(size, 1), threes(size, 3), sevens(size, 7);
  for (const bool is_for_upload : {false, true, false}) {
    // A block that a copy has filled before, and whose use is over.
    static_cast<void>((batch(2).to(gpu) + 1).to(Device{}));
    static_cast<void>((batch(2).to(gpu) + 1).to(Device{}));
    const StorageHandle block =
        is_for_upload ? device.allocate_for_upload(bytes) : device.allocate(bytes);
    const Tensor x = make_tensor({.dtype = f32, .shape = {size}, .is_weak = false, .device = gpu},
                                 {1}, 0, block);
    Tensor first = full({size}, 9, f32, gpu);
    if (!is_for_upload) {
      eager::copy_into(first, x);
      first = x + 0;
    }
    device.upload(ones.data(), block->data, bytes);
    const Tensor second = x * 2;
    device.upload(threes.data(), block->data, bytes);
    const Tensor third = x * 2;
    eager::copy_into(first, x);
    device.upload(sevens.data(), block->data, bytes);
    CHECK(is_full_of(x + 0, 7));
    CHECK(is_full_of(third, 6));
    CHECK(is_full_of(second, 2));
    CHECK(is_full_of(first, 9));
  }
}

TEST_CASE("a copy that fails half way does not go on later", "[.copies-beside]") {
  const auto driver = fake();
  static_cast<void>((batch(1).to(gpu) + 1).to(Device{}));
  // The copy, the event behind it, and the work's wait for it.
  for (const auto& [name, call] : std::vector<std::pair<const char*, uint64_t>>{
           {"cuMemcpyHtoDAsync_v2", 1}, {"cuEventRecord", 1}, {"cuStreamWaitEvent", 1}}) {
    INFO(name);
    driver->fail(name, call, 999);
    CHECK(has(error_of([] { static_cast<void>(batch(3).to(gpu)); }), "error 999"));
    const Tensor x = full({size}, 5, f32, gpu), y = full({size}, 6, f32, gpu);
    CHECK(is_full_of(x, 5));
    CHECK(is_full_of(batch(4).to(gpu), 4));
    CHECK(is_full_of(x, 5));
    CHECK(is_full_of(y, 6));
  }
}

TEST_CASE("copies leave few blocks alone that are still used", "[.copies-beside]") {
  Backend& device = backend(gpu);
  const int64_t large = GENERATE(3, 9) * size;  // of a segment; of the driver's own
  std::set<const void*> places;
  const auto use = [&] {
    const Tensor x = full({large}, 1, f32, Device{}).to(gpu);
    places.insert(x.internals().unsettled_address());
    return sum(x);
  };
  std::vector<Tensor> sums = {use()};
  device.release_cached_memory();
  places.clear();
  const auto counts = fake()->counts;
  const uint64_t events = counts().events;
  for (int i = 0; i < 8; ++i) sums.push_back(use());
  CHECK(places.size() == 4);  // in rotation
  device.release_cached_memory();
  CHECK(counts().events <= events + 3);  // of pinned buffers, of which there are four
  // With a budget, a block that is still used is better than none.
  sums.push_back(use());
  const MemoryStatistics now = device.memory();
  device.set_memory_budget(now.in_use + now.cached);
  for (int i = 0; i < 4; ++i) sums.push_back(use());
  CHECK(device.memory().system_allocations == now.system_allocations);
  device.set_memory_budget(0);
  for (const Tensor& each : sums) CHECK(is_full_of(each, static_cast<float>(large)));
}
