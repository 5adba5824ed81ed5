#include "bindings/python/src/lock.h"

#include "bindings/python/src/context.h"
#include "core/call_order.h"

#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace nitinol::python {
namespace {

std::atomic<bool> is_ending = false;
/// Threads that ask for the lock, and those that run Python inside of C++.
std::atomic<int> asking = 0, inside = 0;
std::atomic<std::thread::id> ends{};  ///< the thread that ends the interpreter
/// Whether this thread has given the lock away.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool has_given = false;

/// Passes the thread that ends the interpreter, and all before the end; others it keeps.
void pass() {
  ++asking;  // before looking: who ends the interpreter waits for those that may have passed
  if (!is_ending || ends.load() == std::this_thread::get_id()) return;
  --asking;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void end() {
  ends = std::this_thread::get_id();
  is_ending = true;
  PyThreadState* state = PyEval_SaveThread();
  // Those that are inside end by themselves, or stop at the next of our functions. A program whose
  // thread never comes to one must end all the same.
  for (int i = 0; i < 500 && (asking > 0 || inside > 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  PyEval_RestoreThread(state);
}

}  // namespace

// Without the lock, C++ cannot ask which scopes of Python it is inside of.
Unlocked::Unlocked() {
  refresh_settings();
  state_ = PyEval_SaveThread();
  had_given_ = std::exchange(has_given, true);
}

Unlocked::~Unlocked() {
  pass();
  PyEval_RestoreThread(state_);
  --asking;
  has_given = had_given_;
}

Locked::Locked() {
  pass();
  state_ = PyGILState_Ensure();
  ++inside;
  --asking;
  had_given_ = std::exchange(has_given, false);
}

Locked::~Locked() {
  has_given = had_given_;
  PyGILState_Release(state_);
  --inside;
}

bool has_lock() {
  return !has_given && PyGILState_GetThisThreadState() != nullptr;
}

void bind_end(nanobind::module_& m) {
  // Another thread's call may have to run Python before it ends.
  static constexpr WaitHooks hooks = {
      .begin = []() noexcept -> void* {
        return has_lock() ? new (std::nothrow) Unlocked : nullptr;
      },
      .end = [](void* given) noexcept { delete static_cast<Unlocked*>(given); }};
  wait_hooks = &hooks;
  m.def("_end", end);
  nanobind::module_::import_("atexit").attr("register")(m.attr("_end"));
}

}  // namespace nitinol::python
