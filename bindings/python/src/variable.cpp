// Variable, Generator, HostValue, and the base class of modules.
//
// Assigning a Variable may wait for another thread's call that assigns it, so Python's lock is
// given away: that call may be one that runs Python.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/compile.h"
#include "bindings/python/src/display.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/function.h"
#include "bindings/python/src/index.h"
#include "bindings/python/src/operators.h"
#include "bindings/python/src/pytree.h"
#include "bindings/python/src/watched.h"

#include <fmt/format.h>

#include <unordered_map>

namespace nitinol::python {
namespace {

Tensor get(nb::handle self) {
  check_self(self, types().variable);
  return convert<Tensor>({"Variable", "self", self});
}

void set(const Variable& variable, const Tensor& value) {
  const Unlocked release;
  variable.set(value);
}

/// `v += x`: one update, which no other thread's comes between.
template <class Update>
PyObject* in_place(PyObject* self, PyObject* other, Update&& update) {
  if (!is_operand(other)) Py_RETURN_NOTIMPLEMENTED;
  try {
    const auto operand = convert<Operand>({"operator", "the right operand", other});
    const Variable variable = variable_in(self);
    {
      const Unlocked release;
      update(variable, operand.argument());
    }
    Py_INCREF(self);
    return self;
  } catch (...) {
    return raised();
  }
}

PyObject* add_to(PyObject* self, PyObject* other) {
  return in_place(self, other, [](const Variable& v, const Argument& x) { v += x; });
}
PyObject* subtract_from(PyObject* self, PyObject* other) {
  return in_place(self, other, [](const Variable& v, const Argument& x) { v -= x; });
}
PyObject* multiply_by(PyObject* self, PyObject* other) {
  return in_place(self, other, [](const Variable& v, const Argument& x) { v *= x; });
}
PyObject* divide_by(PyObject* self, PyObject* other) {
  return in_place(self, other, [](const Variable& v, const Argument& x) {
    v.update([&](const Tensor& value) { return value / x; });
  });
}

PyObject* subscript(PyObject* self, PyObject* key) {
  try {
    return to_python(get_item(get(self), key)).release().ptr();
  } catch (...) {
    return raised();
  }
}

int assign_subscript(PyObject* self, PyObject* key, PyObject* value) {
  try {
    if (value == nullptr) throw_python(PyExc_TypeError, "elements of a Variable cannot be deleted");
    const Variable variable = variable_in(self);
    const Unlocked release;
    variable.update([&](const Tensor& x) {
      const Locked lock;
      return set_item(x, key, value);
    });
    return 0;
  } catch (...) {
    raised();
    return -1;
  }
}

Py_hash_t hash_of(PyObject* self) {
  return static_cast<Py_hash_t>(variable_in(self).cell().id);
}

Variable variable_from(nb::handle initial) {
  return Variable(convert<Tensor>({"Variable", "initial", initial}));
}

constexpr char class_of_variables[] = "Variable", initial_name[] = "initial";

const PyType_Slot variable_slots[] = {
    NITINOL_SLOT(Py_tp_new,
                 (&slots::make<Variable, &variable_from, class_of_variables, initial_name>)),
    NITINOL_SLOT(Py_tp_init, slots::no_init),
    NITINOL_OPERATOR_SLOTS,
    {Py_nb_inplace_add, reinterpret_cast<void*>(add_to)},
    {Py_nb_inplace_subtract, reinterpret_cast<void*>(subtract_from)},
    {Py_nb_inplace_multiply, reinterpret_cast<void*>(multiply_by)},
    {Py_nb_inplace_true_divide, reinterpret_cast<void*>(divide_by)},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(assign_subscript)},
    {Py_tp_hash, reinterpret_cast<void*>(hash_of)},
    {0, nullptr}};

/// As Tensor's of `function`, repr or str.
std::string text_by(PyObject* function(PyObject*), nb::handle self) {
  check_self(self, types().variable);
  const Variable& variable = variable_in(self);
  const char* name = variable.tracks_gradient() ? "parameter" : "Variable";
  if (function == PyObject_Repr && tracer::is_recording())
    return fmt::format("{}({}, being recorded)", name, describe(variable.spec()));
  const nb::object text = nb::steal(function(to_python(get(self)).ptr()));
  if (!text.is_valid()) throw nb::python_error();
  return fmt::format("{}({})", name, nb::cast<std::string>(text));
}
std::string text_of(nb::handle self) {
  return text_by(PyObject_Repr, self);
}

void bind_value(nb::class_<Variable>& variable) {
  variable
      .def(
          "get", [](nb::handle self) { return to_python(get(self)); },
          nb::sig("def get(self) -> Tensor"), "The present value.")
      .def(
          "set",
          [](const Variable& self, nb::handle value) {
            set(self, convert<Tensor>({"set", "value", value}));
          },
          nb::arg("value"), nb::sig("def set(self, value: TensorLike) -> None"),
          "Replaces the value, by one of the same shape and dtype.")
      .def_prop_rw(
          "value", [](nb::handle self) { return to_python(get(self)); },
          [](const Variable& self, nb::handle value) {
            set(self, convert<Tensor>({"value", "the new value", value}));
          },
          nb::for_getter(nb::sig("def value(self) -> Tensor")),
          nb::for_setter(nb::sig("def value(self, value: TensorLike, /) -> None")),
          nb::for_getter("The present value; another of the same shape and dtype may be assigned."))
      .def(
          "item", [](nb::handle self) { return to_python(get(self)).attr("item")(); },
          nb::sig("def item(self) -> float | int | bool"), "The one element of the value.")
      .def(
          "tolist", [](nb::handle self) { return to_python(get(self)).attr("tolist")(); },
          nb::sig("def tolist(self) -> typing.Any"), "The value's elements, as lists of lists.")
      .def(
          "numpy", [](nb::handle self) { return to_python(get(self)).attr("numpy")(); },
          nb::sig("def numpy(self) -> typing.Any"), "The value as NumPy's array.")
      .def_prop_ro(
          "shape", [](const Variable& v) { return to_python(v.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"),
          "The size of each axis, which never changes.")
      .def_prop_ro("dtype", &Variable::dtype, "The type of the elements.")
      .def_prop_ro("device", &Variable::device, "Where the value lies.")
      .def_prop_ro("ndim", &Variable::rank, "Number of axes.")
      .def_prop_ro("size", &Variable::size, "Number of elements.")
      .def_prop_ro(
          "at", [](nb::handle self) { return parts_of(get(self)); },
          nb::sig("def at(self) -> _Parts"),
          "The value's at: v.at[key].add(value) is a Tensor, and v stays as it is.")
      .def_prop_ro(
          "T", [](nb::handle self) -> nb::object { return to_python(get(self)).attr("T"); },
          nb::sig("def T(self) -> Tensor"), "The value, its axes in reverse order.")
      .def_prop_ro(
          "mT", [](nb::handle self) -> nb::object { return to_python(get(self)).attr("mT"); },
          nb::sig("def mT(self) -> Tensor"), "The value, the last two axes exchanged.");
}

void bind_gradient(nb::class_<Variable>& variable) {
  variable
      .def_prop_ro("tracks_gradient", &Variable::tracks_gradient,
                   "Whether backward() computes a gradient for this Variable.")
      .def_prop_rw(
          "grad",
          [](const Variable& v) {  // None of one that gathers none: hasattr() asks for it
            return to_python(v.tracks_gradient() ? unlocked([&] { return v.grad(); }) : Tensor());
          },
          [](const Variable& v, nb::handle value) {
            const auto gradient = convert<std::optional<Tensor>>({"grad", "the gradient", value});
            const Unlocked release;
            gradient ? v.set_grad(*gradient) : v.clear_grad();
          },
          nb::for_setter(nb::arg("value").none()),
          nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
          nb::for_setter(nb::sig("def grad(self, value: TensorLike | None, /) -> None")),
          "What backward() has gathered; None if nothing was. Set it to None to clear it.")
      .def(
          "clear_grad",
          [](const Variable& v) {
            const Unlocked release;
            v.clear_grad();
          },
          "Forgets the gradient.");
}

/// What other libraries and Python itself ask for.
void bind_protocols(nb::class_<Variable>& variable) {
  variable
      .def(
          "__array__",
          [](nb::handle self, nb::args args, nb::kwargs kwargs) {
            return to_python(get(self)).attr("__array__")(*args, **kwargs);
          },
          nb::sig("def __array__(self, dtype: object = None, copy: bool | None = None) -> "
                  "typing.Any"))
      .def(
          "__dlpack__",
          [](nb::handle self, nb::kwargs kwargs) {
            return to_python(get(self)).attr("__dlpack__")(**kwargs);
          },
          nb::sig("def __dlpack__(self, **options: object) -> typing.Any"))
      .def("__dlpack_device__",
           [](nb::handle self) { return to_python(get(self)).attr("__dlpack_device__")(); })
      .def("__len__",
           [](const Variable& v) {
             if (v.rank() == 0) throw_python(PyExc_TypeError, "len() of a 0-d Variable");
             return v.shape()[0];
           })
      .def("__iter__",
           [](nb::handle self) { return nb::steal(PyObject_GetIter(to_python(get(self)).ptr())); })
      .def(
          "__reversed__",
          [](nb::handle self) { return to_python(get(self)).attr("__reversed__")(); },
          nb::sig("def __reversed__(self) -> collections.abc.Iterator[Tensor]"))
      .def("__repr__", text_of)
      .def("__str__", [](nb::handle self) { return text_by(PyObject_Str, self); })
      .def(
          "__format__",
          [](nb::handle self, nb::str spec) -> nb::object {
            if (nb::len(spec) == 0) return nb::str(text_by(PyObject_Str, self).c_str());
            return to_python(get(self)).attr("__format__")(spec);
          },
          nb::sig("def __format__(self, spec: str, /) -> str"))
      .def(
          "_repr_html_",
          [](nb::handle self) {
            const std::string text = text_of(self);
            const Variable& v = variable_in(self);
            return html_of(v.tracks_gradient() ? "parameter" : "Variable", v.spec(), text);
          },
          "For notebooks: dtype, shape, device, bytes, and the elements as print() abbreviates "
          "them.");
  variable.attr("__array_ufunc__") = nb::none();
  variable.attr("__array_priority__") = 1001;
}

void bind_copies(nb::module_& m, nb::class_<Variable>& variable) {
  variable
      .def(
          "clone",
          [](const Variable& v) {
            const Unlocked release;
            return v.clone();
          },
          "A new Variable with the present value, which tracks gradients if this one does.")
      .def(
          "__copy__", [](const Variable& v) { return v; }, "The same cell.")
      .def(
          "__deepcopy__",
          [](const Variable& v, nb::handle) {
            const Unlocked release;
            return v.clone();
          },
          nb::arg("memo"),
          nb::sig("def __deepcopy__(self, memo: dict[int, typing.Any], /) -> "
                  "Variable"),
          "A new cell.")
      .def("__reduce__", [m](nb::handle self) {
        check_self(self, types().variable);
        const char* make = variable_in(self).tracks_gradient() ? "parameter" : "Variable";
        return nb::make_tuple(m.attr(make), nb::make_tuple(to_python(get(self))));
      });
}

void bind_variable(nb::module_& m) {
  nb::class_<Variable> variable(
      m, "Variable", nb::type_slots(variable_slots), nb::is_final(), nb::is_weak_referenceable(),
      "Variable(initial)\n--\n\nThe one mutable thing: a cell that holds a Tensor, of a shape and "
      "dtype that never "
      "change.\n\n"
      "Inside a compiled function a read sees the last assignment of the same call; all\n"
      "assignments are committed together when the call succeeds, and none if it raises.");
  types().variable = variable;
  bind_value(variable);
  bind_gradient(variable);
  bind_protocols(variable);
  bind_copies(m, variable);
  m.def(
      "parameter",
      [](nb::handle initial) {
        return parameter(convert<Tensor>({"parameter", "initial", initial}));
      },
      nb::arg("initial"), nb::sig("def parameter(initial: TensorLike) -> Variable"),
      "A Variable that tracks gradients: what is to be learned. `initial` must be floating.");
}

void bind_generator(nb::module_& m) {
  static Signature constructor("Generator", {"seed", "device"}, 0, 2, 1);
  constructor.intern();
  nb::class_<Generator> generator(m, "Generator", nb::is_final(),
                                  "A stream of counter-based random numbers (Philox 4x32-10).");
  types().generator = generator;
  generator
      .def("__init__",
           with_arguments<2, Generator*>(
               constructor,
               [](Generator* self, const Arguments& given) {
                 const auto where = given.get_or<std::optional<Device>>(1, {});
                 new (self) Generator(given.get<uint64_t>(0), where.value_or(default_device()));
               }),
           nb::sig("def __init__(self, seed: int, device: DeviceLike | None = None) -> None"))
      .def(
          "manual_seed",
          [](const Generator& self, nb::handle seed) {
            const auto number = convert<uint64_t>({"manual_seed", "seed", seed});
            const Unlocked release;
            self.manual_seed(number);
          },
          nb::arg("seed"), nb::sig("def manual_seed(self, seed: int) -> None"),
          "Starts the stream of `seed` from its beginning.")
      .def_prop_ro("state", &Generator::state, "Key and counter, an int64[2] Variable.")
      .def_prop_ro("device", &Generator::device, "Where it draws.");
  m.def(
      "default_generator",
      [](nb::handle device) {
        const auto where = convert<std::optional<Device>>({"default_generator", "device", device});
        return default_generator(where.value_or(default_device()));
      },
      nb::arg("device") = nb::none(),
      nb::sig("def default_generator(device: DeviceLike | None = None) -> Generator"),
      "The process's generator of a device, seeded with 0 at its first use.");
}

// ---- host values

/// A value of host code that compiled functions may depend on.
struct PythonHostValue {
  nb::object value;
  Watched watched;
};

PythonHostValue* host_value_in(PyObject* self) {
  return nb::inst_ready(self) ? nb::inst_ptr<PythonHostValue>(self) : nullptr;
}

int traverse_host_value(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (const PythonHostValue* held = host_value_in(self)) Py_VISIT(held->value.ptr());
  return 0;
}

int clear_host_value(PyObject* self) {
  if (PythonHostValue* held = host_value_in(self)) {
    const nb::object last = std::move(held->value);  // whose end may look at this
    held->value = nb::none();
  }
  return 0;
}

const PyType_Slot host_value_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_host_value)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_host_value)},
    {0, nullptr}};

void bind_host_value(nb::module_& m) {
  static Signature constructor("HostValue", {"value", "name"}, 0, 2, 1);
  constructor.intern();
  nb::class_<PythonHostValue>(
      m, "HostValue", nb::is_final(), nb::type_slots(host_value_slots),
      "A value of Python that compiled functions may depend on: a flag, a mode.\n\nReading it "
      "while a compiled function is recorded makes the Plan valid for this value only; after a "
      "change explain() says that `name` changed.")
      .def("__init__",
           with_arguments<2, PythonHostValue*>(
               constructor,
               [](PythonHostValue* self, const Arguments& given) {
                 nb::object value = nb::borrow(given.value(0));
                 const Watched watched(value, given.get_or<std::string>(1, ""), current_epoch());
                 new (self) PythonHostValue{std::move(value), watched};
               }),
           nb::sig("def __init__(self, value: typing.Any, name: str = '') -> None"))
      .def_prop_rw(
          "value",
          [](const PythonHostValue& self) {
            self.watched.note();
            return self.value;
          },
          [](PythonHostValue& self, nb::object value) {
            self.watched.set(value);
            std::swap(self.value, value);  // the old one ends when the new one is there
          },
          nb::for_setter(nb::arg("value").none()),
          nb::for_getter(nb::sig("def value(self) -> typing.Any")),
          nb::for_setter(nb::sig("def value(self, value: typing.Any, /) -> None")),
          nb::for_getter("What it holds; to read it in a compiled function is to depend on it."))
      .def("__bool__",
           [](const PythonHostValue& self) {
             self.watched.note();
             const nb::object value = self.value;  // its __bool__ may assign another
             const int is_true = PyObject_IsTrue(value.ptr());
             if (is_true < 0) throw nb::python_error();
             return is_true == 1;
           })
      .def("__repr__", [](const PythonHostValue& self) {
        const nb::object value = self.value;
        return "HostValue(" + nb::cast<std::string>(nb::repr(value)) + ")";
      });
}

// ---- modules

/// What every module of Python has: attributes that compiled functions may depend on.
struct ModuleBase {
  /// Attributes that a recording has read, by name.
  std::unordered_map<std::string, Watched> read;
  /// The epoch in which a recorded call made it (core/interpreter.h): what such a module holds is
  /// the call's own. 0: none did.
  uint64_t birth = 0;
};

/// The part of C++, made at the first need: a class of Python need not call our __init__.
ModuleBase& module_in(PyObject* self) {
  auto* module = nb::inst_ptr<ModuleBase>(self);
  if (!nb::inst_ready(self)) {
    new (module) ModuleBase;
    nb::inst_mark_ready(self);
  }
  return *module;
}

/// The module's own attribute of that name, borrowed, or null.
PyObject* own_attribute(PyObject* self, PyObject* name) {
  const nb::object own = nb::steal(PyObject_GenericGetDict(self, nullptr));
  if (!own.is_valid()) {
    PyErr_Clear();
    return nullptr;
  }
  return PyDict_GetItemWithError(own.ptr(), name);
}

/// A new module, without __init__.
PyObject* new_module(PyTypeObject* type, PyObject*, PyObject*) {
  try {
    nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(type)));
    if (tracer::is_recording()) module_in(made.ptr()).birth = current_epoch();
    return made.release().ptr();
  } catch (...) {
    return raised();
  }
}

/// A recording notes what it reads; anywhere else this is what object.__getattribute__ does.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found == nullptr || !tracer::is_recording()) return found;
  try {
    // Not a method or a property; but a default that the class has, and an instance may replace.
    if (own_attribute(self, name) == nullptr && !is_plain(found)) return found;
    auto& [read, birth] = module_in(self);
    const auto key = nb::cast<std::string>(nb::str(nb::handle(name)));
    auto value = read.find(key);
    if (value == read.end()) {
      const std::string shown = fmt::format("{}.{}", class_name(self), key);
      value = read.try_emplace(key, found, shown, birth).first;
    }
    value->second.note();
    return found;
  } catch (...) {
    Py_DECREF(found);
    return raised();
  }
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  try {
    PyObject* old = own_attribute(self, name);
    if (old != nullptr && value != nullptr && is_variable(old) && !is_variable(value) &&
        is_operand(value)) {
      const Variable variable = variable_in(old);
      set(variable, convert<Tensor>({"assignment to a Variable of a module", "value", value}));
      return 0;
    }
    const auto key = nb::cast<std::string>(nb::str(nb::handle(name)));
    auto& [read, birth] = module_in(self);
    if (tracer::is_recording() && old != value && !is_of_this_call(birth)) {
      obstruct(
          fmt::format("the function assigns self.{}, which is no Variable: a Plan would not do "
                      "it again; make it a Variable in __init__",
                      key));
    }
    const auto noted = read.find(key);
    if (noted != read.end()) noted->second.set(value);
    return PyObject_GenericSetAttr(self, name, value);
  } catch (...) {
    raised();
    return -1;
  }
}

const PyType_Slot module_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_module)},
                                    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                                    {Py_tp_setattro, reinterpret_cast<void*>(set_attribute)},
                                    {0, nullptr}};

}  // namespace

void bind_variables(nb::module_& m) {
  bind_variable(m);
  bind_generator(m);
  bind_host_value(m);
  nb::class_<ModuleBase>(m, "ModuleBase", nb::type_slots(module_slots), nb::dynamic_attr(),
                         nb::is_weak_referenceable(), "What nn.Module is made of.");
}

}  // namespace nitinol::python
