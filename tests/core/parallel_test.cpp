#include "core/parallel.h"

#include <omp.h>

#include <atomic>
#include <fenv.h>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#  include <immintrin.h>
#endif

#include "core/error.h"
#include "tests/on_threads.h"

#include <catch2/catch.hpp>

using namespace nitinol;

namespace {

using Piece = std::pair<int64_t, int64_t>;

std::set<Piece> ranges_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  std::set<Piece> ranges;
  parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    const std::scoped_lock lock(mutex);
    ranges.emplace(first, last);
  });
  return ranges;
}

}  // namespace

TEST_CASE("parallel_for covers the range once, cut at multiples of the grain", "[core][parallel]") {
  for (const int count : {1, 2, 3, 7}) {
    const Threads threads(count);
    for (const int64_t begin : {0, 5}) {
      for (const int64_t size : {0, 1, 2, 9, 10, 11, 64, 1000}) {
        for (const int64_t grain : {1, 3, 10, 5000}) {
          const std::set<Piece> ranges = ranges_of(begin, begin + size, grain);
          CAPTURE(count, begin, size, grain);
          int64_t next = begin;
          for (const auto& [first, last] : ranges) {
            REQUIRE(first == next);
            REQUIRE(last > first);
            REQUIRE((first - begin) % grain == 0);
            next = last;
          }
          REQUIRE(next == begin + size);
          REQUIRE(static_cast<int>(ranges.size()) <= count);
        }
      }
    }
  }
}

TEST_CASE("parallel_for uses as many threads as there are blocks", "[core][parallel]") {
  const Threads threads(3);
  CHECK(ranges_of(0, 300, 100).size() == 3);
  CHECK(ranges_of(0, 200, 100).size() == 2);
  CHECK(ranges_of(0, 100, 100) == std::set<Piece>{{0, 100}});
}

TEST_CASE("parallel_for near the largest integer does not overflow", "[core][parallel]") {
  const Threads threads(2);
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(ranges_of(most - 10, most, most) == std::set<Piece>{{most - 10, most}});
  CHECK(ranges_of(0, most, most / 2 + 1).size() == 2);
}

TEST_CASE("parallel_for inside parallel_for runs in its thread", "[core][parallel]") {
  const Threads threads(2);
  std::atomic<int> calls = 0;
  std::atomic<bool> same_thread = true;
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    const auto id = std::this_thread::get_id();
    if (available_threads() != 1) same_thread = false;
    parallel_for(0, 100, 1, [&](int64_t first, int64_t last) {
      if (std::this_thread::get_id() != id || first != 0 || last != 100) same_thread = false;
      ++calls;
    });
  });
  CHECK(same_thread);
  CHECK(calls == 2);
  CHECK(available_threads() == 2);
}

TEST_CASE("an exception on any thread is rethrown, that of the lowest range", "[core][parallel]") {
  const Threads threads(3);
  for (int round = 0; round < 20; ++round) {
    std::string text;
    try {
      parallel_for(0, 3, 1, [](int64_t first, int64_t) {
        if (first > 0) throw std::runtime_error(std::to_string(first));
      });
    } catch (const std::runtime_error& error) {
      text = error.what();
    }
    REQUIRE(text == "1");
  }
  CHECK(ranges_of(0, 3, 1).size() == 3);  // the pool still works
}

TEST_CASE("several threads may call parallel_for at once", "[core][parallel]") {
  const Threads threads(2);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&sum] {
      for (int k = 0; k < 50; ++k) {
        parallel_for(0, 100, 10, [&sum](int64_t first, int64_t last) { sum += last - first; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(sum == 20'000);
}

TEST_CASE("set_num_threads refuses what is not a number of threads", "[core][parallel]") {
  const int before = num_threads();
  CHECK_THROWS_AS(set_num_threads(0), Error);
  CHECK_THROWS_WITH(set_num_threads(-2), Catch::Contains("expected at least 1, got -2"));
  CHECK(num_threads() == before);
}

TEST_CASE("every thread computes with the default float mode, then has its own back",
          "[core][parallel]") {
  const Threads threads(2);
  // A value that only the run-time mode decides.
  const auto tiny_survives = [] {
    const volatile float tiny = std::numeric_limits<float>::denorm_min();
    return tiny * 1.0F != 0.0F;
  };
  const auto rounds_to_nearest = [] {
    const volatile float one = 1.0F;
    const volatile float bit = 1e-10F;
    return one + bit == 1.0F;
  };
  REQUIRE(fesetround(FE_UPWARD) == 0);
#if defined(__x86_64__)
  const auto saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // flush-to-zero, denormals-are-zero
#endif
  std::atomic<int> right = 0;
  for (const int64_t size : {1, 2}) {
    parallel_for(0, size, 1, [&](int64_t, int64_t) {
      if (tiny_survives() && rounds_to_nearest()) ++right;
    });
  }
#if defined(__x86_64__)
  const bool restored = (_mm_getcsr() & 0xE040) == ((saved | 0x8040) & 0xE040);
  _mm_setcsr(saved);
#else
  const bool restored = true;
#endif
  const bool still_upward = fegetround() == FE_UPWARD;
  REQUIRE(fesetround(FE_TONEAREST) == 0);
  CHECK(right == 3);
  CHECK(restored);
  CHECK(still_upward);
}

TEST_CASE("LibraryThreads sets OpenMP's thread count and restores it", "[core][parallel]") {
  const int before = omp_get_max_threads();
  {
    const LibraryThreads threads(before + 1);
#ifdef NITINOL_STD_THREADS
    CHECK(omp_get_max_threads() == 1);
#else
    CHECK(omp_get_max_threads() == before + 1);
#endif
  }
  CHECK(omp_get_max_threads() == before);
  std::atomic<int> inside = 0;
  const Threads two(2);
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    const LibraryThreads threads(2);
    inside += omp_get_max_threads();
  });
  CHECK(inside == 2);
}

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not follow threads into a fork
TEST_CASE("after a fork the child computes alone", "[core][parallel]") {
  const Threads threads(2);
  ranges_of(0, 100, 1);  // starts the pool
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool alone = available_threads() == 1 && ranges_of(0, 100, 1).size() == 1;
    _exit(alone ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(ranges_of(0, 100, 1).size() == 2);
}
#endif
