// Memory of Python's objects that tensors read without a copy: asarray(copy=False).
#pragma once

#include "bindings/python/src/from.h"

namespace nitinol::python {

/// borrow_bytes() of memory that lives as long as `owner`, which the tensor keeps.
[[nodiscard]] Tensor borrow_from(nb::object owner, const void* data, const Spec& spec,
                                 const Strides& strides);

/// tp_traverse of an object that holds `tensor`: visits the owner of its memory if nothing else
/// keeps that by way of a tensor, so that a cycle through it is collected.
int traverse_owner(const Tensor& tensor, visitproc visit, void* arg);

}  // namespace nitinol::python
