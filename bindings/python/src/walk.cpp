#include "bindings/python/src/walk.h"

#include "bindings/python/src/errors.h"

#include <fmt/format.h>

namespace nitinol::python {

void throw_changed(nb::handle container) {
  throw_python(PyExc_RuntimeError,
               fmt::format("a {} changed its size while it was taken apart, by what it holds or by "
                           "another thread",
                           class_name(container)));
}

nb::object keys_of(nb::handle value, const Class& type) {
  const nb::object keys = type.ordered.is_valid() ? nb::object(type.ordered.attr("keys")(value))
                                                  : nb::steal(PyDict_Keys(value.ptr()));
  if (!keys.is_valid()) throw nb::python_error();
  nb::object tuple = nb::steal(PySequence_Tuple(keys.ptr()));
  if (!tuple.is_valid()) throw nb::python_error();
  return tuple;
}

Py_ssize_t count_of(nb::handle value, const Class& type) {
  // Of the base class: what a subclass's __len__ says may be something else.
  switch (type.kind) {
    case Kind::dataclass:
      return PyTuple_Size(type.fields.ptr());
    case Kind::dict:
      return PyDict_Size(value.ptr());
    case Kind::list:
      return PyList_Size(value.ptr());
    default:
      return PyTuple_Size(value.ptr());
  }
}

Parts taken_apart(nb::handle value, const Class& type) {
  const nb::object flatten = type.flatten;  // own: it may register the class anew
  const nb::object parts = flatten(value);
  if (!PyTuple_Check(parts.ptr()) || nb::len(parts) != 2) {
    throw_python(PyExc_TypeError,
                 fmt::format("register_pytree: flatten of a {} must return (children, aux)",
                             class_name(value)));
  }
  const nb::object children = nb::steal(PySequence_Tuple(nb::object(parts[0]).ptr()));
  if (!children.is_valid()) throw nb::python_error();
  return {children, parts[1]};
}

nb::object put_together(nb::handle type, nb::handle aux, nb::handle children) {
  const nb::object unflatten = class_of_type(type).unflatten;
  if (!unflatten.is_valid()) {
    throw_python(PyExc_TypeError, "register_pytree: a class is registered no longer");
  }
  return unflatten(aux, children);
}

nb::object dataclass_of(nb::handle type, nb::handle names, const std::vector<nb::object>& values) {
  const nb::handle base(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  nb::object made = base.attr("__new__")(type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    PyObject* name = PyTuple_GetItem(names.ptr(), static_cast<Py_ssize_t>(i));
    if (PyObject_GenericSetAttr(made.ptr(), name, values[i].ptr()) != 0) throw nb::python_error();
  }
  return made;
}

nb::object tuple_of(const std::vector<nb::object>& values) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  if (!tuple.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < values.size(); ++i)
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), nb::object(values[i]).release().ptr());
  return tuple;
}

}  // namespace nitinol::python
