// Python's operators for Tensor, Variable and Scalar: slots of a type, the same for all three.
#pragma once

#include "bindings/python/src/errors.h"
#include "bindings/python/src/from.h"
#include "bindings/python/src/function.h"

namespace nitinol::python::slots {

/// T(value), by __new__ alone: there is no object that holds no T, whatever is called or is not.
template <class T, T (*from)(nb::handle), const char* name, const char* parameter>
PyObject* make(PyTypeObject* type, PyObject* positional, PyObject* named) {
  try {
    static Signature signature(name, {parameter}, 0, 1, 1);
    signature.intern();
    std::array<PyObject*, 1> value = {};
    signature.arrange(nb::borrow<nb::args>(positional),
                      named == nullptr ? nb::kwargs() : nb::borrow<nb::kwargs>(named), value);
    return holding(reinterpret_cast<PyObject*>(type), from(value[0])).release().ptr();
  } catch (...) {
    return raised();
  }
}
inline int no_init(PyObject*, PyObject*, PyObject*) {
  return 0;
}

using Binary = Tensor (*)(const Argument&, const Argument&);

/// op(a, b) of two operands; NotImplemented if one is none. Python calls it for both orders.
PyObject* binary(PyObject* a, PyObject* b, Binary op) noexcept;
template <Binary op>
PyObject* binary_slot(PyObject* a, PyObject* b) {
  return binary(a, b, op);
}
PyObject* quotient_and_rest(PyObject* a, PyObject* b);
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus);
PyObject* matrix_product(PyObject* a, PyObject* b);
PyObject* compare(PyObject* a, PyObject* b, int operation);
PyObject* negative(PyObject* a);
PyObject* positive(PyObject* a);
PyObject* absolute(PyObject* a);
PyObject* invert(PyObject* a);
int as_bool(PyObject* a);
PyObject* as_int(PyObject* a);
PyObject* as_float(PyObject* a);

}  // namespace nitinol::python::slots

#define NITINOL_SLOT(slot, function) \
  { slot, reinterpret_cast<void*>(function) }
#define NITINOL_BINARY(slot, op) \
  NITINOL_SLOT(slot, (&nitinol::python::slots::binary_slot<nitinol::op>))
/// For a list of PyType_Slot.
#define NITINOL_OPERATOR_SLOTS                                                             \
  NITINOL_BINARY(Py_nb_add, add), NITINOL_BINARY(Py_nb_subtract, sub),                     \
      NITINOL_BINARY(Py_nb_multiply, mul), NITINOL_BINARY(Py_nb_true_divide, div),         \
      NITINOL_BINARY(Py_nb_floor_divide, floor_divide),                                    \
      NITINOL_BINARY(Py_nb_remainder, remainder), NITINOL_BINARY(Py_nb_and, bitwise_and),  \
      NITINOL_BINARY(Py_nb_or, bitwise_or), NITINOL_BINARY(Py_nb_xor, bitwise_xor),        \
      NITINOL_BINARY(Py_nb_lshift, left_shift), NITINOL_BINARY(Py_nb_rshift, right_shift), \
      NITINOL_SLOT(Py_nb_divmod, nitinol::python::slots::quotient_and_rest),               \
      NITINOL_SLOT(Py_nb_power, nitinol::python::slots::power),                            \
      NITINOL_SLOT(Py_nb_matrix_multiply, nitinol::python::slots::matrix_product),         \
      NITINOL_SLOT(Py_tp_richcompare, nitinol::python::slots::compare),                    \
      NITINOL_SLOT(Py_nb_negative, nitinol::python::slots::negative),                      \
      NITINOL_SLOT(Py_nb_positive, nitinol::python::slots::positive),                      \
      NITINOL_SLOT(Py_nb_absolute, nitinol::python::slots::absolute),                      \
      NITINOL_SLOT(Py_nb_invert, nitinol::python::slots::invert),                          \
      NITINOL_SLOT(Py_nb_bool, nitinol::python::slots::as_bool),                           \
      NITINOL_SLOT(Py_nb_int, nitinol::python::slots::as_int),                             \
      NITINOL_SLOT(Py_nb_float, nitinol::python::slots::as_float)
