// Errors as Python's exceptions, and places in Python's code.
#pragma once

#include "bindings/python/src/from.h"

namespace nitinol::python {

/// Makes the C++ exception that is being handled Python's; returns null, as slots of types do.
/// Called in `catch (...)`.
PyObject* raised() noexcept;

/// The exception class of a kind.
[[nodiscard]] nb::handle class_of(ErrorKind kind);
/// Of an index that does not exist: also Python's IndexError.
[[nodiscard]] nb::handle bounds_error();
[[noreturn]] void throw_python(nb::handle exception_class, const std::string& text);

/// A PlaceProvider: "model.py:42", the innermost line of Python that is not this package's.
[[nodiscard]] std::string python_place(void* context);

/// Gives an object back when Python's lock is held next: what is destroyed on a thread of ours, or
/// under a lock of ours, must not wait for Python's. (Takes over one reference.)
void release_later(PyObject* object) noexcept;

}  // namespace nitinol::python
