#include "backends/cpu/onednn/exit_gate.h"

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <pthread.h>
#include <thread>
#include <unistd.h>

namespace nitinol::cpu {
namespace {

constinit std::atomic<int> calls_inside = 0;
constinit std::atomic<bool> is_closed = false;
std::atomic<std::thread::id> closed_by;

void wait_a_moment() {
  constexpr timespec moment = {.tv_sec = 0, .tv_nsec = 1'000'000};
  nanosleep(&moment, nullptr);
}

void close() {
  if (is_closed) return;
  closed_by = std::this_thread::get_id();
  is_closed = true;
  // A product of matrices may take its time, but a thread that was killed never leaves.
  for (int tries = 0; calls_inside > 0 && tries < 2000; ++tries) wait_a_moment();
}

}  // namespace

bool is_onednn_ending() {
  return is_closed && closed_by.load() == std::this_thread::get_id();
}

InsideOneDnn::InsideOneDnn() {
  ++calls_inside;
  if (!is_closed || is_onednn_ending()) return;
  --calls_inside;
  for (;;) pause();
}

InsideOneDnn::~InsideOneDnn() {
  --calls_inside;
}

void close_at_exit() {
  // The child of a fork has one thread, which was forking.
  static const bool is_prepared = pthread_atfork(nullptr, nullptr, [] { calls_inside = 0; }) == 0;
  static_cast<void>(is_prepared);
  constexpr int enough = 4096;
  static constinit std::atomic<int> times = 0;
  if (times.fetch_add(1, std::memory_order_relaxed) < enough) std::atexit(close);
}

}  // namespace nitinol::cpu
