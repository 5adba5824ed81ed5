// Values that are made at most once. With steps as keys: executables_test.cpp; with kernels and
// their code: backends/cuda/compiler_test.cpp.
#include "core/once_cache.h"

#include "core/parallel.h"
#include "tests/in_child.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace nitinol;

namespace {

using Cache = OnceCache<std::string, std::shared_ptr<const int>>;

std::size_t hash_of(std::string_view key) {
  return key.size();  // many keys have one
}

Cache::Made made(int value, std::size_t bytes = 1) {
  return {std::make_shared<const int>(value), bytes};
}

int get(Cache& cache, std::string_view key, int value, std::size_t bytes = 1) {
  return *cache.get(hash_of(key), key, [&] { return made(value, bytes); });
}

/// The value that is there, or -1.
int found(Cache& cache, std::string_view key) {
  const auto value = cache.find(hash_of(key), key);
  return value ? **value : -1;
}

/// Waits until `count` questions have found an entry.
void wait_for_hits(Cache& cache, uint64_t count) {
  while (cache.counts().hits < count) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a value is made once, and found by its key", "[core][once][no-isa]") {
  Cache cache(100);
  CHECK(found(cache, "a") == -1);
  CHECK(get(cache, "a", 1) == 1);
  CHECK(get(cache, "a", 2) == 1);
  CHECK(get(cache, "b", 3) == 3);
  CHECK(found(cache, "a") == 1);
  CHECK(found(cache, "c") == -1);
  const Cache::Counts counts = cache.counts();
  CHECK(counts.claimed == 2);
  CHECK(counts.hits == 2);
  CHECK(counts.entries == 2);
  CHECK(counts.bytes == 2);
}

TEST_CASE("who asks while a value is made waits for it, and for no other", "[core][once][no-isa]") {
  Cache cache(100);
  std::atomic<int> makers = 0;
  std::vector<std::thread> threads;
  std::vector<int> got(8);
  for (int& mine : got) {
    threads.emplace_back([&] {
      mine = *cache.get(1, "a", [&] {
        ++makers;
        wait_for_hits(cache, 7);
        return made(5);
      });
    });
  }
  CHECK(get(cache, "b", 6) == 6);  // of the same hash, meanwhile
  for (std::thread& thread : threads) thread.join();
  CHECK(makers == 1);
  CHECK(got == std::vector<int>(8, 5));
}

TEST_CASE("all who wait see the error, and the next call tries again", "[core][once][no-isa]") {
  Cache cache(100);
  std::atomic<int> makers = 0, failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        static_cast<void>(cache.get(1, "a", [&]() -> Cache::Made {
          ++makers;
          wait_for_hits(cache, 3);
          throw std::runtime_error("no");
        }));
      } catch (const std::runtime_error&) {
        ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(makers == 1);
  CHECK(failed == 4);
  CHECK(cache.counts().entries == 0);
  CHECK(found(cache, "a") == -1);
  CHECK(get(cache, "a", 2) == 2);
}

TEST_CASE("what is claimed together is made by several threads", "[core][once][no-isa]") {
  Cache cache(100);
  CHECK(get(cache, "a", 1) == 1);
  {
    Cache::Claims claims(cache);
    CHECK_FALSE(claims.add(1, "a"));
    for (const char* const key : {"b", "c", "dd"}) CHECK(claims.add(hash_of(key), key));
    CHECK_FALSE(claims.add(1, "b"));
    REQUIRE(claims.size() == 3);
    CHECK(claims.key(2) == "dd");
    parallel_for(0, 2, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        claims.put(static_cast<std::size_t>(i), made(10 + static_cast<int>(i)));
    });
    CHECK(claims.is_finished(1));
    CHECK_FALSE(claims.is_finished(2));
    CHECK(found(cache, "b") == 10);
  }
  CHECK(found(cache, "c") == 11);
  CHECK(found(cache, "dd") == -1);
  CHECK(get(cache, "dd", 4) == 4);
}

TEST_CASE("who waits for what is given up makes it", "[core][once][no-isa]") {
  Cache cache(100);
  int got = 0;
  std::thread other;
  {
    Cache::Claims claims(cache);
    REQUIRE(claims.add(1, "a"));
    other = std::thread([&] { got = get(cache, "a", 7); });
    wait_for_hits(cache, 1);
  }
  other.join();
  CHECK(got == 7);
  CHECK(cache.counts().claimed == 2);
}

TEST_CASE("values not used for longest go, the latest stays", "[core][once][no-isa]") {
  Cache cache(10);
  CHECK(get(cache, "a", 1, 4) == 1);
  CHECK(get(cache, "b", 2, 4) == 2);
  CHECK(found(cache, "a") == 1);
  CHECK(get(cache, "c", 3, 4) == 3);
  CHECK(found(cache, "b") == -1);
  CHECK(found(cache, "a") == 1);
  CHECK(get(cache, "d", 4, 40) == 4);
  CHECK(found(cache, "d") == 4);
  CHECK(cache.counts().entries == 1);
  CHECK(cache.counts().bytes == 40);
  CHECK(cache.counts().evicted == 3);
  cache.set_limit(0);
  CHECK(found(cache, "d") == 4);
  cache.clear();
  CHECK(found(cache, "d") == -1);
  CHECK(cache.counts().bytes == 0);
}

TEST_CASE("what is being made is not counted, and stays whatever room is made",
          "[core][once][no-isa]") {
  Cache cache(4);
  const auto value = cache.get(1, "a", [&] {
    for (const char* const key : {"b", "c", "d"}) CHECK(get(cache, key, 1, 4) == 1);
    CHECK(cache.counts().entries == 2);
    CHECK(cache.counts().bytes == 4);
    return made(9, 1);
  });
  CHECK(*value == 9);
  // As the older of the two it goes when it is counted.
  CHECK(cache.counts().entries == 1);
  CHECK(found(cache, "d") == 1);

  cache.set_limit(100);
  static_cast<void>(cache.get(1, "e", [&] {
    cache.clear();
    return made(1, 50);
  }));
  CHECK(cache.counts().bytes == 0);
  CHECK(cache.counts().entries == 0);
}

TEST_CASE("a fork while a value is made leaves the child one that works",
          "[core][once][fork][no-isa]") {
  Cache cache(100);
  std::atomic<bool> is_making = false;
  std::thread other([&] {
    static_cast<void>(cache.get(1, "a", [&] {
      is_making = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return made(5);
    }));
  });
  while (!is_making) std::this_thread::yield();
  CHECK(test::in_child([&] { return get(cache, "a", 6) == 5 ? 0 : 1; }) == 0);
  other.join();
}
