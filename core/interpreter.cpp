#include "core/interpreter.h"

#include <atomic>

namespace nitinol {
namespace {

std::atomic<uint64_t> epoch = 0;

}  // namespace

constinit thread_local Interpreter* thread_interpreter::top = nullptr;
constinit thread_local bool thread_interpreter::watches = false;
constinit thread_local PendingCall* thread_interpreter::pending = nullptr;

uint64_t current_epoch() {
  return epoch.load(std::memory_order_relaxed);
}

uint64_t begin_epoch() {
  return epoch.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace nitinol
