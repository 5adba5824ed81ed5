// Structures of Python, taken apart and made again: what arguments, results and tree_map share.
//
// A walk runs Python (hashes, properties, what users registered), and Python may change or drop
// what is walked over. So what a walk hands out it owns meanwhile, and it goes over as many
// children as there were at its beginning, or throws RuntimeError.
#pragma once

#include "bindings/python/src/pytree.h"

namespace nitinol::python {

[[nodiscard]] constexpr bool is_container(Kind kind) {
  return kind >= Kind::tuple;
}

/// What stands for a value in a list of words: its kind, and how many children it has.
[[nodiscard]] constexpr uint64_t word(Kind kind, Py_ssize_t count = 0) {
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(count) << 8;
}
/// In a dict's word: the number of its class follows.
inline constexpr uint64_t with_class = uint64_t{1} << 63;

/// Throws RuntimeError: a container has more or fewer children than at the walk's beginning.
[[noreturn]] void throw_changed(nb::handle container);

/// A dict's keys in its own order, a tuple. The dict below an OrderedDict has another order where a
/// key was moved to an end.
[[nodiscard]] nb::object keys_of(nb::handle value, const Class& type);
/// The children of a container that is no registered class.
struct Children {
  Py_ssize_t count = 0;
  /// dataclass: how many are its fields, and the names of all, a tuple. After the fields come the
  /// other attributes that the instance has: its __post_init__ or its methods have set them.
  Py_ssize_t fields = 0;
  nb::object names = {};
  /// Calls f(name) for each attribute that is no field.
  template <class F>
  void for_each_other(F&& f) const {
    for (Py_ssize_t i = fields; names.is_valid() && i < count; ++i)
      f(nb::handle(PyTuple_GetItem(names.ptr(), i)));
  }
};
[[nodiscard]] Children children_of(nb::handle value, const Class& type);
/// The attributes that an instance has of its own, a dict; null if its class provides for none.
[[nodiscard]] nb::object attributes_of(nb::handle value, const Class& type);
/// An attribute that is no field.
[[nodiscard]] nb::object other_attribute(nb::handle value, nb::handle name);

/// Where a class that register_pytree() is given has (flatten, unflatten): it owns them, so that
/// Python's garbage collector sees cycles through it.
inline constexpr char registered_name[] = "__nitinol_pytree__";

/// {children, aux} of a registered class; the children are a tuple.
struct Parts {
  nb::object children, aux;
};
[[nodiscard]] Parts taken_apart(nb::handle value);
/// A registered class's value, made again.
[[nodiscard]] nb::object put_together(nb::handle type, nb::handle aux, nb::handle children);
/// The same dataclass with other attributes; __init__ is not called again.
[[nodiscard]] nb::object dataclass_of(nb::handle type, nb::handle names,
                                      const std::vector<nb::object>& values);
[[nodiscard]] nb::object tuple_of(const std::vector<nb::object>& values);

/// Calls f(key, child) for each of a dict's `count` items, in its own order.
template <class F>
void for_each_item(nb::handle value, const Class& type, Py_ssize_t count, F&& f) {
  if (type.ordered.is_valid()) {
    const nb::object keys = keys_of(value, type);
    if (PyTuple_Size(keys.ptr()) != count) throw_changed(value);
    for (const nb::handle key : keys) {
      const nb::object child = nb::borrow(PyDict_GetItemWithError(value.ptr(), key.ptr()));
      if (!child.is_valid()) {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        throw_changed(value);
      }
      f(key, nb::handle(child));
    }
    return;
  }
  PyObject *key = nullptr, *child = nullptr;
  Py_ssize_t position = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (PyDict_Size(value.ptr()) != count || PyDict_Next(value.ptr(), &position, &key, &child) == 0)
      throw_changed(value);
    const nb::object own_key = nb::borrow(key), own_child = nb::borrow(child);
    f(nb::handle(own_key), nb::handle(own_child));
  }
}

/// Calls f(name, attribute) for what an instance of a subclass of dict has beside its items: what a
/// defaultdict makes where there is none, and what is plain of its own attributes.
template <class F>
void for_each_attribute(nb::handle value, F&& f) {
  const nb::str factory("default_factory");
  if (nb::hasattr(value, factory)) f(nb::handle(factory), nb::object(value.attr(factory)));
  if (!nb::hasattr(value, "__dict__")) return;
  const nb::object own = nb::steal(PyDict_Copy(nb::object(value.attr("__dict__")).ptr()));
  if (!own.is_valid()) throw nb::python_error();
  PyObject *name = nullptr, *attribute = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(own.ptr(), &position, &name, &attribute) != 0)
    if (is_plain(attribute)) f(nb::handle(name), nb::handle(attribute));
}

/// Calls f(child) for each child of a container that is no registered class.
template <class F>
void for_each_child(nb::handle value, const Class& type, const Children& children, F&& f) {
  const Py_ssize_t count = children.count;
  if (type.kind == Kind::tuple || type.kind == Kind::named_tuple) {
    for (Py_ssize_t i = 0; i < count; ++i) f(nb::handle(PyTuple_GetItem(value.ptr(), i)));
  } else if (type.kind == Kind::list) {
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (PyList_Size(value.ptr()) <= i) throw_changed(value);
      const nb::object child = nb::borrow(PyList_GetItem(value.ptr(), i));
      f(nb::handle(child));
    }
  } else if (type.kind == Kind::dict) {
    for_each_item(value, type, count, [&](nb::handle, nb::handle child) { f(child); });
  } else if (type.kind == Kind::dataclass) {
    for (Py_ssize_t i = 0; i < count; ++i) {
      const nb::handle name(PyTuple_GetItem(children.names.ptr(), i));
      const nb::object child =
          i < children.fields ? nb::object(value.attr(name)) : other_attribute(value, name);
      f(nb::handle(child));
    }
  }
}

}  // namespace nitinol::python
