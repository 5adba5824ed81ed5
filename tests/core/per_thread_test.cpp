#include "core/per_thread.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

using namespace nitinol;

namespace {

std::atomic<int> alive = 0;
std::atomic<int> found_null = 0;

struct Thing {
  Thing() { ++alive; }
  Thing(const Thing&) = delete;
  Thing& operator=(const Thing&) = delete;
  ~Thing() {
    if (PerThread<Thing>::get() == nullptr) ++found_null;
    --alive;
  }
};

/// Asks when the thread's object is gone: made before it, so destroyed after.
struct Late {
  ~Late() {
    if (PerThread<Thing>::get() == nullptr) ++found_null;
  }
};

/// Computes when all that the library keeps for the thread is gone.
struct LateComputation {
  Tensor x = Tensor();
  float* result = nullptr;
  ~LateComputation() {
    Tensor y = x;
    for (int i = 0; i < 1000; ++i) y = y + x;  // recycles blocks
    y = sum(softmax(reshape(y, {10, 10})));
    for (int i = 0; i < 3; ++i) y = y + sum(ones({20'000})) * 0;
    *result = y.item<float>();
  }
};

}  // namespace

TEST_CASE("each thread has an object, and none when it ends", "[core]") {
  Thing* const mine = PerThread<Thing>::get();
  CHECK(PerThread<Thing>::get() == mine);
  const int before = alive;
  std::thread([&] {
    static thread_local Late late;
    static_cast<void>(&late);
    CHECK(PerThread<Thing>::get() != mine);
    CHECK(alive == before + 1);
  }).join();
  CHECK(alive == before);
  CHECK(found_null == 2);
}

TEST_CASE("a thread computes until its last destructor", "[core]") {
  for (int round = 0; round < 20; ++round) {
    float result = 0;
    std::thread([&] {
      static thread_local LateComputation late;  // before the first use of the library
      late.x = ones({100});
      late.result = &result;
      for (int i = 0; i < 300; ++i) static_cast<void>(late.x + i);
    }).join();
    CHECK(result == Approx(10));
  }
}
