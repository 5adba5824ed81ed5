// Callables of Python that the tape holds: Python's garbage collector is told of them, or what a
// result of checkpoint() or custom_gradient() keeps alive, and that keeps the result, would never
// be collected.
#pragma once

#include "bindings/python/src/from.h"

#include <memory>
#include <vector>

namespace nitinol::python {

/// The callables of one node: owned by the node's rule, whose functions share it.
using HeldCallables = std::vector<std::weak_ptr<PyObject>>;

/// Notes that the node which computed `result` has a rule with these. With Python's lock.
void note_held(const Tensor& result, const std::shared_ptr<HeldCallables>& held);

/// tp_traverse of an object that holds `tensor`: visits what is owned through this tensor alone.
/// What others share is not visited, and so never taken for garbage.
int traverse_tape(const Tensor& tensor, visitproc visit, void* arg);

}  // namespace nitinol::python
