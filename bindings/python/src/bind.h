// What module.cpp calls, in this order: each binds one subject.
#pragma once

#include "bindings/python/src/from.h"

namespace nitinol::python {

void bind_errors(nb::module_& m);
void bind_types(nb::module_& m);   ///< DType, Device, Scalar
void bind_tensor(nb::module_& m);  ///< Tensor and its operators
void bind_variables(nb::module_& m);
void bind_explanation(nb::module_& m);  ///< what compile()'s functions say of themselves
void bind_compile(nb::module_& m);
void bind_autograd(nb::module_& m);
void bind_nn(nb::module_& m);
void bind_dist(nb::module_& m);
void bind_profile(nb::module_& m);
void bind_curves(nb::module_& m);
void bind_system(nb::module_& m);     ///< devices, threads, memory, files, text
void bind_functions(nb::module_& m);  ///< generated from the headers (generate.py)
/// Gives signatures that inspect reads to the functions and methods that the others have bound.
void add_signatures(nb::module_& m);

}  // namespace nitinol::python
