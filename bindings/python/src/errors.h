// Errors as Python's exceptions, and places in Python's code.
#pragma once

#include "bindings/python/src/from.h"

namespace nitinol::python {

/// Makes the C++ exception that is being handled Python's; returns null, as slots of types do.
/// Called in `catch (...)`.
PyObject* raised() noexcept;

/// A type's `__get__`: as methods, its objects are given the object that they are looked up in.
PyObject* bind_method(PyObject* self, PyObject* object, PyObject* type) noexcept;

/// The report as text, for Python: C++'s names are those that Python has. `where`, if it is given,
/// is what was called, instead of what C++ knows of.
[[nodiscard]] std::string message_of(const Error& error, const char* where = nullptr);

/// Words of C++ and those that Python has in their place.
using Words = std::vector<std::pair<std::string_view, std::string_view>>;
[[nodiscard]] Error in_words(const Words& words, const Error& error);
/// f(); what its Errors say is said in these words.
template <class F>
auto in_words(const Words& words, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw in_words(words, error);
  }
}

/// The exception class of a kind.
[[nodiscard]] nb::handle class_of(ErrorKind kind);
/// "an int", "a str".
[[nodiscard]] std::string with_article(std::string_view name);
/// Of an index that does not exist: also Python's IndexError.
[[nodiscard]] nb::handle bounds_error();
[[noreturn]] void throw_python(nb::handle exception_class, const std::string& text);

/// A PlaceProvider: "model.py:42", the innermost line of Python that is not this package's.
[[nodiscard]] std::string python_place(void* context);

/// One step down a structure; throws RecursionError where Python's code would.
class Deeper {
 public:
  Deeper() {
    if (Py_EnterRecursiveCall(" while taking a structure apart") != 0) throw nb::python_error();
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

/// Gives an object back when Python's lock is held next: what is destroyed on a thread of ours, or
/// under a lock of ours, must not wait for Python's. (Takes over one reference.)
void release_later(PyObject* object) noexcept;
/// Gives back what waits for that; with Python's lock.
void release_waiting();

}  // namespace nitinol::python
