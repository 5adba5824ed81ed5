// compile() for Python: what the rest of the binding needs of it.
#pragma once

#include "bindings/python/src/from.h"
#include "core/scalar_value.h"
#include "core/tensor.h"

#include <string>

namespace nitinol::python {

/// Notes, inside a recording, that the function does something that its trace cannot hold.
void obstruct(const std::string& reason);

/// Notes, inside a recording, that Python looks at a tensor, by the name that Python has for it.
void note_read(const Tensor& tensor, const char* what);
/// The same for a number: if it is an argument, what is recorded holds for this number only.
void note_look(const Scalar& number, const char* what);

/// Whether what was born in that epoch (core/interpreter.h) was made by the call that is recorded.
[[nodiscard]] bool is_of_this_call(uint64_t birth);

/// Called before x[...] = v gives a Tensor object of Python another value. Inside a recording that
/// is part of the trace if the object is the call's own, and else an obstacle.
void check_assignable(const Tensor& tensor);

/// Of a compiled function's type: what it is as an attribute of an object. (method.cpp)
PyObject* bind_compiled(PyObject* function, PyObject* object, PyObject* type) noexcept;
void bind_compiled_methods(nb::module_& m);

}  // namespace nitinol::python
