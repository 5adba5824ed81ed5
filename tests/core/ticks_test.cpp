#include "core/ticks.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace nitinol::ticks_test {

int64_t steady_ns() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

TEST_CASE("ticks become nanoseconds of the steady clock", "[core][ticks]") {
  static_cast<void>(TickScale());
  // Between two looks at that, each tick is.
  std::vector<int64_t> before, during, after;
  for (int i = 0; i < 100; ++i) {
    before.push_back(steady_ns());
    during.push_back(ticks());
    after.push_back(steady_ns());
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  const TickScale scale;
  constexpr int64_t off = 2000;  // what one of two pairs may be wrong by, beside others' work
  for (std::size_t i = 0; i < during.size(); ++i) {
    const int64_t time = scale.nanoseconds(during[i]);
    CHECK(time >= before[i] - off);
    CHECK(time <= after[i] + off);
  }
}

TEST_CASE("ticks never go back", "[core][ticks]") {
  const TickScale scale;
  int64_t last = ticks();
  for (int i = 0; i < 10'000; ++i) {
    const int64_t now = ticks();
    REQUIRE(now >= last);
    REQUIRE(scale.nanoseconds(now) >= scale.nanoseconds(last));
    last = now;
  }
}

}  // namespace nitinol::ticks_test
