#include "bindings/python/src/operators.h"

#include "bindings/python/src/compile.h"
#include "bindings/python/src/errors.h"

#include <limits>

namespace nitinol::python::slots {
namespace {

template <class F>
PyObject* unary(PyObject* a, F&& op) noexcept {
  try {
    const auto x = convert<Tensor>({"operator", "operand", a});
    return to_python(computed(x.size(), [&] { return op(x); })).release().ptr();
  } catch (...) {
    return raised();
  }
}

/// The number in a: a Scalar's, or a tensor's one element.
template <class T>
T number_in(PyObject* a, const char* what) {
  if (is_scalar(a)) {
    const Scalar& scalar = scalar_in(a);
    note_look(scalar, what);
    if (scalar.kind() == Scalar::Kind::real) return static_cast<T>(scalar.to_double());
    return scalar.is_beyond_int64() ? static_cast<T>(scalar.bits())
                                    : static_cast<T>(scalar.to_integer());
  }
  const auto x = convert<Tensor>({"reading a number", "x", a});
  note_read(x, what);
  return x.item<T>();
}

}  // namespace

PyObject* binary(PyObject* a, PyObject* b, Binary op) noexcept {
  if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  try {
    const auto x = convert<Operand>({"operator", "the left operand", a});
    const auto y = convert<Operand>({"operator", "the right operand", b});
    return to_python(computed(x.size() + y.size(), [&] { return op(x.argument(), y.argument()); }))
        .release()
        .ptr();
  } catch (...) {
    return raised();
  }
}

PyObject* quotient_and_rest(PyObject* a, PyObject* b) {
  if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  const nb::object quotient = nb::steal(binary(a, b, &floor_divide));
  const nb::object rest = quotient.is_valid() ? nb::steal(binary(a, b, &remainder)) : nb::object();
  return rest.is_valid() ? PyTuple_Pack(2, quotient.ptr(), rest.ptr()) : nullptr;
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(a, b, &nitinol::pow);
}

PyObject* matrix_product(PyObject* a, PyObject* b) {
  if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  try {
    const auto x = convert<Tensor>({"matmul", "the left operand", a});
    const auto y = convert<Tensor>({"matmul", "the right operand", b});
    return to_python(computed(long_work, [&] { return matmul(x, y); })).release().ptr();
  } catch (...) {
    return raised();
  }
}

namespace {

/// `number`; where that is an int which no int64 or uint64 holds, what `other` compares with in its
/// place: the nearest double, or, with integers, what lies beyond them all. Throws OverflowError
/// beyond doubles.
nb::object comparable(PyObject* number, PyObject* other) {
  int beyond = 0;
  if (PyLong_CheckExact(number)) PyLong_AsLongLongAndOverflow(number, &beyond);
  if (beyond == 0) return nb::borrow(number);
  const auto tensor = convert<Tensor>({"operator", "operand", other});
  PyLong_AsUnsignedLongLong(number);
  const bool is_beyond_uint64 = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (!is_beyond_uint64) return nb::borrow(number);
  const double value = is_floating(tensor.dtype())
                           ? PyLong_AsDouble(number)
                           : beyond * std::numeric_limits<double>::infinity();
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return nb::steal(PyFloat_FromDouble(value));
}

}  // namespace

PyObject* compare(PyObject* given, PyObject* with, int operation) {
  if (!is_operand(given) || !is_operand(with)) Py_RETURN_NOTIMPLEMENTED;
  nb::object left, right;
  try {
    left = comparable(given, with);
    right = comparable(with, given);
  } catch (...) {
    return raised();
  }
  PyObject *a = left.ptr(), *b = right.ptr();
  switch (operation) {
    case Py_LT:
      return binary(a, b, &lt);
    case Py_LE:
      return binary(a, b, &le);
    case Py_EQ:
      return binary(a, b, &eq);
    case Py_NE:
      return binary(a, b, &ne);
    case Py_GT:
      return binary(a, b, &gt);
    default:
      return binary(a, b, &ge);
  }
}

PyObject* negative(PyObject* a) {
  return unary(a, [](const Tensor& x) { return neg(x); });
}

PyObject* positive(PyObject* a) {
  return unary(a, [](const Tensor& x) { return x; });
}

PyObject* absolute(PyObject* a) {
  return unary(a, [](const Tensor& x) { return abs(x); });
}

PyObject* invert(PyObject* a) {
  return unary(a, [](const Tensor& x) { return bitwise_not(x); });
}

int as_bool(PyObject* a) {
  try {
    if (is_scalar(a)) return number_in<double>(a, "bool()") != 0 ? 1 : 0;
    return static_cast<bool>(convert<Tensor>({"bool", "x", a})) ? 1 : 0;
  } catch (...) {
    raised();
    return -1;
  }
}

PyObject* as_int(PyObject* a) {
  try {
    const bool is_real = is_scalar(a) ? scalar_in(a).kind() == Scalar::Kind::real
                                      : is_floating(convert<Tensor>({"int", "x", a}).dtype());
    if (is_real)
      return PyLong_FromDouble(number_in<double>(a, "int()"));  // raises for NaN and infinity
    const bool is_large = is_scalar(a) ? scalar_in(a).is_beyond_int64()
                                       : convert<Tensor>({"int", "x", a}).dtype() == u64;
    if (is_large) return PyLong_FromUnsignedLongLong(number_in<uint64_t>(a, "int()"));
    return PyLong_FromLongLong(number_in<int64_t>(a, "int()"));
  } catch (...) {
    return raised();
  }
}

PyObject* as_float(PyObject* a) {
  try {
    return PyFloat_FromDouble(number_in<double>(a, "float()"));
  } catch (...) {
    return raised();
  }
}

}  // namespace nitinol::python::slots
