// Memory that other libraries of Python hold, and ours for them: NumPy, DLPack, buffers.
#pragma once

#include "bindings/python/src/from.h"

namespace nitinol::python {

enum class Copy : uint8_t {
  always,
  never,  ///< the tensor reads the other's memory; an Error where it cannot
};

/// The elements of an array: with `__dlpack__`, NumPy's, or what has Python's buffer protocol.
/// Throws TypeError for element types that there is no DType for, naming them.
[[nodiscard]] Tensor from_array(const From& from, Copy copy);

/// The tensor where the host can read it.
[[nodiscard]] Tensor on_host(const Tensor& tensor);

/// The elements' bytes in row-major order. `what` asks for them: a look at the elements.
[[nodiscard]] nb::object bytes_of(const Tensor& x, const char* what);

/// Python's buffer protocol, for slots of the type Tensor: read-only, without a copy.
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);

/// asarray, from_dlpack, and Tensor's methods of the kind. After Tensor is bound.
void bind_arrays(nb::module_& m);

}  // namespace nitinol::python
