// Scopes of C++ as contexts of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

namespace nitinol::python {

/// `with`: a Scope(argument) from __enter__ to __exit__. May be entered again inside itself.
template <class Scope, class Argument>
class Context {
 public:
  explicit Context(Argument argument) : argument_(argument) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() = default;
  void enter() { scopes_.push_back(std::make_unique<Scope>(argument_)); }
  void exit() { scopes_.pop_back(); }

 private:
  Argument argument_;
  std::vector<std::unique_ptr<Scope>> scopes_;
};

/// Binds a Context but for its constructor.
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
