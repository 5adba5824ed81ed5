#include "backends/host/allocator.h"

#include "core/error.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

StorageHandle take(std::size_t bytes) {
  return host::allocate(bytes);
}

uint64_t asked_of_system() {
  return host::memory_statistics().system_allocations;
}

}  // namespace

TEST_CASE("blocks are aligned, as large as asked for, and apart", "[allocator]") {
  std::vector<StorageHandle> blocks;
  std::vector<std::size_t> sizes = {0,     1,     63,     64,      65,      256,
                                    257,   319,   320,    321,     4096,    32767,
                                    32768, 32769, 100000, 2097151, 2097152, 5000000};
  for (std::size_t bytes = 1; bytes < 40000; bytes = bytes * 9 / 8 + 1) sizes.push_back(bytes);
  for (const std::size_t bytes : sizes) {
    StorageHandle block = take(bytes);
    CHECK(reinterpret_cast<uintptr_t>(block->data) % 64 == 0);
    CHECK(block->bytes == bytes);
    CHECK_FALSE(block->is_borrowed);
    CHECK(is_unique(block));
    std::memset(block->data, static_cast<int>(blocks.size()), bytes);
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto* data = static_cast<const unsigned char*>(blocks[i]->data);
    bool is_whole = true;
    for (std::size_t j = 0; j < sizes[i]; ++j) is_whole &= data[j] == static_cast<unsigned char>(i);
    CHECK(is_whole);
  }
}

TEST_CASE("a steady state asks the system for nothing", "[allocator]") {
  for (const std::size_t bytes : {16U, 1000U, 32768U, 50000U, 3000000U, 70000000U}) {
    StorageHandle x = take(bytes);
    x = take(bytes);  // two alive at a time
    const uint64_t before = asked_of_system();
    for (int i = 0; i < 100; ++i) x = take(bytes);
    CHECK(asked_of_system() == before);
  }
}

TEST_CASE("what is counted without a lock is what is counted with one", "[allocator]") {
  const auto check = [] {
    const MemoryStatistics all = host::memory_statistics(), some = host::memory_counts();
    CHECK(some.in_use == all.in_use);
    CHECK(some.allocations == all.allocations);
  };
  const StorageHandle here = take(100'000);
  check();
  std::thread([&] {
    const StorageHandle there = take(200'000);
    check();
  }).join();
  check();
}

TEST_CASE("blocks go around between threads", "[allocator]") {
  const auto relay = [] {
    std::vector<StorageHandle> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(take(128));
    std::thread([&blocks] { blocks.clear(); }).join();
  };
  relay();
  const uint64_t before = asked_of_system();
  for (int i = 0; i < 20; ++i) relay();
  // Blocks come back when the thread that released them ends.
  CHECK(asked_of_system() == before);
}

TEST_CASE("statistics count bytes in use and cached", "[allocator]") {
  host::release_cached_memory();
  const MemoryStatistics before = host::memory_statistics();
  {
    const StorageHandle block = take(10000000);
    const MemoryStatistics during = host::memory_statistics();
    CHECK(during.in_use >= before.in_use + 10000000);
    CHECK(during.in_use <= before.in_use + 10200000);
    CHECK(during.peak >= during.in_use);
    CHECK(during.allocations == before.allocations + 1);
    CHECK(during.system_allocations == before.system_allocations + 1);
  }
  const MemoryStatistics after = host::memory_statistics();
  CHECK(after.in_use == before.in_use);
  CHECK(after.cached >= before.cached + 10000000);
  host::release_cached_memory();
  CHECK(host::memory_statistics().cached < 10000000);
}

TEST_CASE("what cannot be had is an error, and harms nothing", "[allocator]") {
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2,
        std::size_t{1} << 60, std::size_t{1} << 47}) {
    try {
      static_cast<void>(take(bytes));
      FAIL("it was had");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::value);
    }
  }
  CHECK(take(100)->data != nullptr);
}

TEST_CASE("a budget bounds what is in use and cached", "[allocator]") {
  { const StorageHandle cached = take(20000000); }
  const std::size_t in_use = host::memory_statistics().in_use;
  host::set_memory_budget(in_use + 30000000);
  const StorageHandle first = take(25000000);  // only if the cached block goes
  CHECK(host::memory_statistics().in_use + host::memory_statistics().cached <= in_use + 30000000);
  CHECK_THROWS_AS(take(10000000), Error);
  host::set_memory_budget(0);
  CHECK(take(10000000)->data != nullptr);
  host::release_cached_memory();
}

TEST_CASE("memory that is released is used again", "[allocator]") {
  host::release_cached_memory();  // other cases'
  void* const data = take(12345)->data;
  CHECK(take(12345)->data == data);
  void* large = take(9000000)->data;
  CHECK(take(9000000)->data == large);
}

TEST_CASE("of large blocks the one that was released last is used first", "[allocator]") {
  host::release_cached_memory();  // other cases'
  std::vector<StorageHandle> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(take(3'000'000));
  for (const std::size_t last : {2U, 0U, 3U, 1U}) {
    const void* const data = blocks[last]->data;
    StorageHandle kept = std::move(blocks[last]);
    blocks.clear();
    kept.reset();
    for (int i = 0; i < 4; ++i) blocks.push_back(take(3'000'000));
    CHECK(blocks[0]->data == data);
  }
}

TEST_CASE("large blocks kept beyond what is in use are bounded", "[allocator]") {
  host::release_cached_memory();
  constexpr std::size_t mega = std::size_t{1} << 20;
  for (std::size_t i = 0; i < 40; ++i) static_cast<void>(take((8 + 4 * i) * mega));  // untouched
  CHECK(host::memory_statistics().cached <= 256 * mega);
  host::release_cached_memory();
}
