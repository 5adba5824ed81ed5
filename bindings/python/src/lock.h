// Python's lock, given away and taken.
//
// Not nanobind's: when the interpreter ends, Python ends a thread of its own that asks for the lock
// by unwinding its stack, which C++ in between does not survive. So at the end threads stop here,
// before they ask.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace nitinol::python {

/// While it lives, the thread, which holds Python's lock, does not.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
  bool had_given_;
};

/// While it lives, the thread holds Python's lock.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
  bool had_given_;
};

/// Whether this thread, which runs code of ours, holds Python's lock.
[[nodiscard]] bool has_lock();

/// f(), without Python's lock.
template <class F>
auto unlocked(F&& f) {
  const Unlocked scope;
  return std::forward<F>(f)();
}

/// Has other threads stop when the interpreter ends.
void bind_end(nanobind::module_& m);

}  // namespace nitinol::python
