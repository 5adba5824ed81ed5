// A compiled function with the object that it was taken from, as in `step = model.step`.
//
// Python's own method objects find attributes in the function, which knows no object: eager() and
// __wrapped__ would be called without it.
#include "bindings/python/src/compile.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/from.h"

#include <cstdint>
#include <utility>

namespace nitinol::python {
namespace {

struct CompiledMethod {
  nb::object function, object;
};

CompiledMethod& method_in(nb::handle self) {
  check_self(self, types().method);
  return *nb::inst_ptr<CompiledMethod>(self);
}

/// function(object, ...).
nb::object called(const CompiledMethod& method, nb::handle function, PyObject* positional,
                  PyObject* named) {
  const Py_ssize_t count = PyTuple_Size(positional);
  const nb::object all = nb::steal(PyTuple_New(count + 1));
  if (!all.is_valid()) throw nb::python_error();
  PyTuple_SetItem(all.ptr(), 0, Py_NewRef(method.object.ptr()));
  for (Py_ssize_t i = 0; i < count; ++i)
    PyTuple_SetItem(all.ptr(), i + 1, Py_NewRef(PyTuple_GetItem(positional, i)));
  const nb::object result = nb::steal(PyObject_Call(function.ptr(), all.ptr(), named));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

PyObject* call_slot(PyObject* self, PyObject* positional, PyObject* named) {
  try {
    const CompiledMethod method = method_in(self);
    return called(method, method.function, positional, named).release().ptr();
  } catch (...) {
    return raised();
  }
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto& method = *nb::inst_ptr<CompiledMethod>(self);
  Py_VISIT(method.function.ptr());
  Py_VISIT(method.object.ptr());
  return 0;
}

int clear(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  const CompiledMethod last = std::move(*nb::inst_ptr<CompiledMethod>(self));
  return 0;
}

const PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_slot)},
                             {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear)},
                             {0, nullptr}};

}  // namespace

PyObject* bind_compiled(PyObject* function, PyObject* object, PyObject*) noexcept {
  if (object == nullptr || object == Py_None) return Py_NewRef(function);
  try {
    return holding(types().method, CompiledMethod{nb::borrow(function), nb::borrow(object)})
        .release()
        .ptr();
  } catch (...) {
    return raised();
  }
}

void bind_compiled_methods(nb::module_& m) {
  nb::class_<CompiledMethod> method(m, "_CompiledMethod", nb::type_slots(slots), nb::is_final(),
                                    nb::is_weak_referenceable(),
                                    "A compiled function that is given its object.");
  types().method = method;
  method
      .def("eager",
           [](nb::handle self, nb::args positional, nb::kwargs named) {
             const CompiledMethod kept = method_in(self);
             return called(kept, kept.function.attr("eager"), positional.ptr(), named.ptr());
           })
      .def_prop_ro("__self__", [](nb::handle self) { return method_in(self).object; })
      .def_prop_ro("__func__", [](nb::handle self) { return method_in(self).function; })
      .def_prop_ro("__wrapped__",
                   [](nb::handle self) {
                     const CompiledMethod kept = method_in(self);
                     const nb::object make = nb::module_::import_("types").attr("MethodType");
                     return make(kept.function.attr("__wrapped__"), kept.object);
                   })
      .def("__getattr__",
           [](nb::handle self, nb::str name) {
             return nb::object(method_in(self).function.attr(name));
           })
      .def(
          "__eq__",
          [](nb::handle self, nb::handle other) {
            return other.type().is(types().method) &&
                   method_in(self).function.is(method_in(other).function) &&
                   method_in(self).object.is(method_in(other).object);
          },
          nb::arg("other").none())
      .def("__hash__",
           [](nb::handle self) {
             const CompiledMethod& held = method_in(self);
             return reinterpret_cast<intptr_t>(held.object.ptr()) / 16 ^
                    reinterpret_cast<intptr_t>(held.function.ptr());
           })
      .def("__repr__",
           [](nb::handle self) {
             const auto wrapped = nb::cast<std::string>(nb::repr(nb::getattr(self, "__wrapped__")));
             return "<compiled " + wrapped.substr(1);
           })
      .def("__reduce__", [](nb::handle self) {
        const CompiledMethod& held = method_in(self);
        const nb::object find = nb::module_::import_("builtins").attr("getattr");
        return nb::make_tuple(
            find, nb::make_tuple(held.object, held.function.attr("__wrapped__").attr("__name__")));
      });
}

}  // namespace nitinol::python
