#include "bindings/python/src/lock.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace nitinol::python {
namespace {

std::atomic<bool> is_ending = false;
/// Threads that ask for the lock, and those that run Python inside of C++.
std::atomic<int> asking = 0, inside = 0;
std::atomic<std::thread::id> ends{};  ///< the thread that ends the interpreter

/// Passes the thread that ends the interpreter, and all before the end; others it keeps.
void pass() {
  ++asking;  // before looking: who ends the interpreter waits for those that may have passed
  if (!is_ending || ends.load() == std::this_thread::get_id()) return;
  --asking;
  nanobind::set_leak_warnings(false);  // what it holds is never given back
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

Unlocked::~Unlocked() {
  pass();
  PyEval_RestoreThread(state_);
  --asking;
}

Locked::Locked() {
  pass();
  state_ = PyGILState_Ensure();
  ++inside;
  --asking;
}

Locked::~Locked() {
  PyGILState_Release(state_);
  --inside;
}

void bind_end(nanobind::module_& m) {
  m.def("_end", end);
  nanobind::module_::import_("atexit").attr("register")(m.attr("_end"));
}

}  // namespace nitinol::python
