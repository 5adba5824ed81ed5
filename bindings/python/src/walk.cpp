#include "bindings/python/src/walk.h"

#include "bindings/python/src/errors.h"

#include <fmt/format.h>

namespace nitinol::python {

void throw_changed(nb::handle container) {
  throw_python(PyExc_RuntimeError,
               fmt::format("{} changed its size while it was taken apart, by what it holds or by "
                           "another thread",
                           with_article(class_name(container))));
}

nb::object keys_of(nb::handle value, const Class& type) {
  const nb::object keys = type.ordered.is_valid() ? nb::object(type.ordered.attr("keys")(value))
                                                  : nb::steal(PyDict_Keys(value.ptr()));
  if (!keys.is_valid()) throw nb::python_error();
  nb::object tuple = nb::steal(PySequence_Tuple(keys.ptr()));
  if (!tuple.is_valid()) throw nb::python_error();
  return tuple;
}

namespace {

/// (flatten, unflatten) of a registered class.
nb::object functions_of(nb::handle type) {
  const Class& known = class_of_type(type);
  return known.functions.is_valid() ? known.functions : nb::object(type.attr(registered_name));
}

}  // namespace

nb::object attributes_of(nb::handle value, const Class& type) {
  if (!type.has_attributes) return {};
  nb::object own = nb::steal(PyObject_GenericGetDict(value.ptr(), nullptr));
  if (!own.is_valid()) throw nb::python_error();
  return own;
}

Children children_of(nb::handle value, const Class& type) {
  // Of the base class: what a subclass's __len__ says may be something else.
  if (type.kind == Kind::dict) return {.count = PyDict_Size(value.ptr())};
  if (type.kind == Kind::list) return {.count = PyList_Size(value.ptr())};
  if (type.kind != Kind::dataclass) return {.count = PyTuple_Size(value.ptr())};
  const Py_ssize_t fields = PyTuple_Size(type.fields.ptr());
  Children children = {.count = fields, .fields = fields, .names = type.fields};
  const nb::object own = attributes_of(value, type);
  std::vector<nb::object> others;
  PyObject *name = nullptr, *attribute = nullptr;
  Py_ssize_t position = 0;
  while (own.is_valid() && PyDict_Next(own.ptr(), &position, &name, &attribute) != 0) {
    if (PyUnicode_CheckExact(name) == 0) continue;
    const int is_field = PySequence_Contains(type.fields.ptr(), name);  // of texts: runs no Python
    if (is_field < 0) throw nb::python_error();
    if (is_field == 0) others.push_back(nb::borrow(name));
  }
  if (others.empty()) return children;
  children.names = nb::steal(PySequence_Concat(type.fields.ptr(), tuple_of(others).ptr()));
  children.count += static_cast<Py_ssize_t>(others.size());
  return children;
}

nb::object other_attribute(nb::handle value, nb::handle name) {
  const nb::object own = attributes_of(value, class_of_value(value));
  PyObject* found = own.is_valid() ? PyDict_GetItemWithError(own.ptr(), name.ptr()) : nullptr;
  if (found == nullptr) throw_changed(value);
  return nb::borrow(found);
}

Parts taken_apart(nb::handle value) {
  const nb::object functions = functions_of(type_of(value));
  const nb::object parts = nb::object(functions[0])(value);
  if (!PyTuple_Check(parts.ptr()) || nb::len(parts) != 2) {
    throw_python(PyExc_TypeError,
                 fmt::format("register_pytree: flatten of {} must return (children, aux)",
                             with_article(class_name(value))));
  }
  const nb::object children = nb::steal(PySequence_Tuple(nb::object(parts[0]).ptr()));
  if (!children.is_valid()) throw nb::python_error();
  return {children, parts[1]};
}

nb::object put_together(nb::handle type, nb::handle aux, nb::handle children) {
  if (class_of_type(type).kind != Kind::registered)
    throw_python(PyExc_TypeError, "register_pytree: a class is registered no longer");
  return nb::object(functions_of(type)[1])(aux, children);
}

nb::object dataclass_of(nb::handle type, nb::handle names, const std::vector<nb::object>& values) {
  const nb::handle base(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  nb::object made = base.attr("__new__")(type);
  const Class known = class_of_type(type);
  // A property may have given the value another class, which is none.
  const nb::object fields = known.fields.is_valid() ? known.fields : nb::borrow(names);
  const auto count = static_cast<std::size_t>(PyTuple_Size(fields.ptr()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    PyObject* name = PyTuple_GetItem(names.ptr(), static_cast<Py_ssize_t>(i));
    const bool is_set =
        i < count ? PyObject_GenericSetAttr(made.ptr(), name, values[i].ptr()) == 0
                  : PyDict_SetItem(attributes_of(made, known).ptr(), name, values[i].ptr()) == 0;
    if (!is_set) throw nb::python_error();
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
