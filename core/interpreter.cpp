#include "core/interpreter.h"

#include <atomic>

namespace nitinol {
namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local Interpreter* top = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool watched = false;
std::atomic<uint64_t> epoch = 0;

}  // namespace

Interpreter* top_interpreter() {
  return top;
}

bool is_watched() {
  return watched;
}

InterpreterScope::InterpreterScope(Interpreter& interpreter) : below_(top), was_watched_(watched) {
  top = &interpreter;
  watched = interpreter.watches();
}

InterpreterScope::~InterpreterScope() {
  top = below_;
  watched = was_watched_;
}

uint64_t current_epoch() {
  return epoch.load(std::memory_order_relaxed);
}

uint64_t begin_epoch() {
  return epoch.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace nitinol
