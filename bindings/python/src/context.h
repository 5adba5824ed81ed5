// Scopes of C++ as contexts of Python.
//
// `with` does not nest as scopes of C++ do: a coroutine or generator is left in the middle of one,
// others go on on the same thread, and may close it. So what is set belongs to Python's context
// (contextvars): each task of asyncio sees the scopes that it, or who made it, is inside of. A
// thread's setting is brought up to date before C++ reads it (core/thread_settings.h).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace nitinol::python {

[[noreturn]] void throw_not_entered();

/// What a scope sets.
enum class Setting : uint8_t { gradients, stance, autocast, result_check };

/// A scope that has been entered.
struct Entered;

/// `with`: a setting from __enter__ to __exit__. May be entered again inside itself.
class SettingContext {
 public:
  SettingContext(Setting setting, int value) : setting_(setting), value_(value) {}
  /// Ends what was never left.
  ~SettingContext();
  SettingContext(const SettingContext&) = delete;
  SettingContext& operator=(const SettingContext&) = delete;
  void enter();
  /// Throws RuntimeError if it was not entered, or left as often already.
  void exit();

 private:
  Setting setting_;
  int value_;
  std::vector<std::shared_ptr<Entered>> entered_;
};

/// `with`: a Scope(argument) of C++, for code that is left before anything else runs.
template <class Scope, class Argument>
class Context {
 public:
  explicit Context(Argument argument) : argument_(argument) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() = default;
  void enter() { scopes_.push_back(std::make_unique<Scope>(argument_)); }
  void exit() {
    if (scopes_.empty()) throw_not_entered();
    scopes_.pop_back();
  }

 private:
  Argument argument_;
  std::vector<std::unique_ptr<Scope>> scopes_;
};

/// Brings this thread's settings up to date; with Python's lock, before it is given away.
void refresh_settings() noexcept;

/// Binds a context but for its constructor.
template <class Here>
nanobind::class_<Here> bind_context(nanobind::module_& m, const char* name, const char* doc) {
  nanobind::class_<Here> bound(m, name, doc);
  bound
      .def("__enter__",
           [](nanobind::handle self) {
             nanobind::cast<Here&>(self).enter();
             return nanobind::borrow(self);
           })
      .def(
          "__exit__", [](Here& self, nanobind::args) { self.exit(); },
          nanobind::sig("def __exit__(self, *exception: object) -> None"));
  return bound;
}

}  // namespace nitinol::python
