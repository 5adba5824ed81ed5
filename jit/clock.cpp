#include "jit/clock.h"

#include <atomic>
#include <ctime>

namespace nitinol::jit {
namespace {

std::atomic<int64_t> fake_time = -1;  ///< -1: none

}  // namespace

int64_t coarse_now() {
  const int64_t fake = fake_time.load(std::memory_order_relaxed);
  if (fake >= 0) return fake;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // five times as cheap as the precise one
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double call_now() {
  const int64_t fake = fake_time.load(std::memory_order_relaxed);
  return fake >= 0 ? static_cast<double>(fake) * 1e-9 : precise_now();
}

double own_now() {
  const int64_t fake = fake_time.load(std::memory_order_relaxed);
  if (fake >= 0) return static_cast<double>(fake) * 1e-9;
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

RealClock::RealClock() : before_(fake_time.exchange(-1)) {}

RealClock::~RealClock() {
  fake_time = before_;
}

FakeClock::FakeClock() : before_(fake_time.exchange(coarse_now())) {}

FakeClock::~FakeClock() {
  fake_time = before_;
}

void FakeClock::advance(int64_t nanoseconds) {
  fake_time += nanoseconds;
}

}  // namespace nitinol::jit
