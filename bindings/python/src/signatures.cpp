// What nanobind binds, as objects that inspect, help() and completion know the parameters of.
//
// nanobind's own functions have no signature that inspect reads, and take no attributes. So each is
// replaced by an object that calls it, whose `__signature__` is made of what nanobind knows: in
// Python (nitinol/_signatures.py), when somebody asks; and what it refuses is said in our words.
// The generated functions need none of it.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/errors.h"

#include <cstddef>
#include <string_view>
#include <structmember.h>

namespace nitinol::python {
namespace {

struct Function {
  PyObject_HEAD vectorcallfunc call;
  PyObject* bound;  ///< nanobind's
};

PyObject* bound_of(PyObject* self) {
  return reinterpret_cast<Function*>(self)->bound;
}

std::string_view text_of(nb::handle name) {
  return nb::borrow<nb::str>(name).c_str();
}

/// What nanobind refuses it answers by a list of C++'s types. Says instead which argument it is.
void explain_refusal(PyObject* bound, PyObject* const* given, std::size_t count,
                     PyObject* keywords) {
  nb::python_error error;  // the one that is raised
  const auto text = nb::cast<std::string>(nb::str(error.value()));
  if (text.find("(): incompatible function arguments.") == std::string::npos)
    return error.restore();
  nb::list positional;
  nb::dict named;
  for (std::size_t i = 0; i < count; ++i) positional.append(nb::handle(given[i]));
  const Py_ssize_t names = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < names; ++i)
    named[nb::handle(PyTuple_GetItem(keywords, i))] =
        nb::handle(given[count + static_cast<std::size_t>(i)]);
  nb::module_::import_("nitinol._signatures")
      .attr("refuse")(nb::handle(bound), nb::tuple(positional), named);  // raises
}

PyObject* forward(PyObject* self, PyObject* const* given, std::size_t count, PyObject* keywords) {
  PyObject* result = PyObject_Vectorcall(bound_of(self), given, count, keywords);
  if (result != nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return result;
  try {
    explain_refusal(bound_of(self), given, static_cast<std::size_t>(PyVectorcall_NARGS(count)),
                    keywords);
  } catch (...) {
    return raised();
  }
  return nullptr;
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  try {
    const std::string_view word = text_of(name);
    if (word == "__signature__") {
      const nb::object signature = nb::module_::import_("nitinol._signatures").attr("signature");
      return signature(nb::handle(bound_of(self))).release().ptr();
    }
    if (word == "__doc__") {  // nanobind's begins with the signature
      const nb::object overloads = nb::handle(bound_of(self)).attr("__nb_signature__");
      return nb::object(overloads[0][1]).release().ptr();
    }
    for (const char* of_bound : {"__name__", "__qualname__", "__module__"}) {
      if (word == of_bound) return PyObject_GetAttr(bound_of(self), name);
    }
    return PyObject_GenericGetAttr(self, name);
  } catch (...) {
    return raised();
  }
}

/// What inspect reads of a class; Python before 3.11.3 does not look at an __init__ like ours. A
/// class that derives from it has its own.
PyObject* class_signature(PyObject* self, PyObject* object, PyObject* owner) {
  try {
    const nb::handle dict = reinterpret_cast<PyTypeObject*>(owner)->tp_dict;
    if (object != nullptr || PyDict_GetItemString(dict.ptr(), "__signature__") != self)
      throw_python(PyExc_AttributeError, "__signature__");
    const nb::object signature = nb::module_::import_("nitinol._signatures").attr("of_class");
    return signature(nb::handle(bound_of(self))).release().ptr();
  } catch (...) {
    return raised();
  }
}

PyObject* repr(PyObject* self) {
  return PyObject_Repr(bound_of(self));
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(bound_of(self));
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<Function*>(self)->bound);
  return 0;
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  clear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, nullptr},
    {"_bound", T_OBJECT_EX, offsetof(Function, bound), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyTypeObject* new_type(const char* name, unsigned flags, PyType_Slot last) {
  PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                         {Py_tp_members, members},
                         last,
                         {0, nullptr}};
  PyType_Spec spec = {
      name, sizeof(Function), 0,
      static_cast<unsigned>(Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                            Py_TPFLAGS_DISALLOW_INSTANTIATION) |
          flags,
      slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw nb::python_error();
  return reinterpret_cast<PyTypeObject*>(type);
}

nb::object made(PyTypeObject* type, nb::handle bound) {
  auto* function = PyObject_GC_New(Function, type);
  if (function == nullptr) throw nb::python_error();
  function->call = forward;
  function->bound = bound.inc_ref().ptr();
  PyObject_GC_Track(function);
  return nb::steal(reinterpret_cast<PyObject*>(function));
}

/// (name, value) of all attributes.
nb::list items_of(nb::handle owner) {
  return nb::list(nb::object(owner.attr("__dict__")).attr("items")());
}

/// Replaces the attributes of `owner` that are of the class `theirs` of nanobind.
void replace(nb::handle owner, nb::handle theirs, PyTypeObject* ours) {
  for (const nb::handle item : items_of(owner)) {
    const nb::object name = item[0], value = item[1];
    const std::string_view word = text_of(name);
    // Slots of types take what Python's syntax gives them.
    const bool is_called = word == "__init__" || word == "__call__" || word == "__array__" ||
                           word == "__array_namespace__" || word == "__dlpack__" ||
                           word == "__format__" || word == "__deepcopy__";
    if ((is_called || !word.starts_with("__")) && value.type().is(theirs))
      nb::setattr(owner, name, made(ours, value));
  }
}

}  // namespace

void add_signatures(nb::module_& m) {
  const nb::handle function = nb::object(m.attr("asarray")).type();
  const nb::handle method = nb::object(m.attr("Tensor").attr("to")).type();
  PyTypeObject* functions = new_type("nitinol._ext.function", 0, {0, nullptr});
  PyTypeObject* methods = new_type("nitinol._ext.method", Py_TPFLAGS_METHOD_DESCRIPTOR,
                                   {Py_tp_descr_get, reinterpret_cast<void*>(bind_method)});
  PyTypeObject* signatures = new_type("nitinol._ext.signature", 0,
                                      {Py_tp_descr_get, reinterpret_cast<void*>(class_signature)});
  replace(m, function, functions);
  for (const nb::handle item : items_of(m)) {
    const nb::object value = item[1];
    if (!PyType_Check(value.ptr()) || text_of(nb::object(item[0])).starts_with('_')) continue;
    for (const nb::handle attribute : items_of(value)) {
      if (text_of(nb::object(attribute[0])) != "__init__") continue;
      const nb::object init = attribute[1];
      if (init.type().is(method)) nb::setattr(value, "__signature__", made(signatures, init));
    }
    replace(value, method, methods);
  }
  Py_DECREF(functions);
  Py_DECREF(methods);
  Py_DECREF(signatures);
}

}  // namespace nitinol::python
