// How values of each class are taken apart, looked up by type.
#include "bindings/python/src/errors.h"
#include "bindings/python/src/walk.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>

namespace nitinol::python {
namespace {

/// A class that has been seen, and what forgets it when its type dies: the address may be used
/// again.
struct Known {
  Class what;
  nb::object end;  ///< a weak reference to the type
};
std::unordered_map<PyObject*, Known>& known_classes() {
  static auto* all = new std::unordered_map<PyObject*, Known>;
  return *all;
}

/// Notes how values of a type are taken apart.
const Class& remember(PyObject* type, Class what) {
  const nb::object forget = nb::cpp_function([type](nb::handle) { known_classes().erase(type); });
  nb::object end = nb::steal(PyWeakref_NewRef(type, forget.ptr()));
  if (!end.is_valid()) throw nb::python_error();
  return known_classes()
      .insert_or_assign(type, Known{std::move(what), std::move(end)})
      .first->second.what;
}

bool is_namedtuple(nb::handle type) {
  return PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), &PyTuple_Type) != 0 &&
         nb::hasattr(type, "_fields");
}

bool is_subtype(nb::handle type, PyTypeObject& of) {
  return PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), &of) != 0;
}

/// A class of a module that keeps it.
PyTypeObject& class_named(const char* module, const char* name) {
  const nb::object found = nb::module_::import_(module).attr(name);
  return *reinterpret_cast<PyTypeObject*>(found.ptr());
}

Class make_class(nb::handle type) {
  const auto is = [&](PyTypeObject& of) { return type.ptr() == reinterpret_cast<PyObject*>(&of); };
  const Types& ours = types();
  if (type.is(ours.tensor)) return {.kind = Kind::tensor};
  if (type.is(ours.variable)) return {.kind = Kind::variable};
  if (type.is(ours.scalar)) return {.kind = Kind::scalar};
  if (is(PyFloat_Type)) return {.kind = Kind::real};
  if (is(PyBool_Type)) return {.kind = Kind::boolean};
  if (is(PyLong_Type)) return {.kind = Kind::integer};
  if (is(PyUnicode_Type)) return {.kind = Kind::text};
  if (type.ptr() == type_of(nb::none())) return {.kind = Kind::none};
  if (is(PyTuple_Type)) return {.kind = Kind::tuple};
  if (is(PyList_Type)) return {.kind = Kind::list};
  if (is(PyDict_Type)) return {.kind = Kind::dict};
  if (is_subtype(type, class_named("nitinol._ext", "ModuleBase"))) return {.kind = Kind::module};
  if (is_subtype(type, class_named("enum", "Enum"))) return {.kind = Kind::fixed};
  if (is_namedtuple(type)) return {.kind = Kind::named_tuple};
  // Subclasses as their bases: an OrderedDict, a float of NumPy. (Those of int and str stay what
  // they are: enums.)
  if (is_subtype(type, PyDict_Type)) {
    Class made = {.kind = Kind::dict, .is_subclass = true};
    if (PyTypeObject& ordered = class_named("collections", "OrderedDict");
        is_subtype(type, ordered))
      made.ordered = nb::borrow(reinterpret_cast<PyObject*>(&ordered));
    return made;
  }
  if (is_subtype(type, PyList_Type)) return {.kind = Kind::list, .is_subclass = true};
  if (is_subtype(type, PyTuple_Type)) return {.kind = Kind::tuple, .is_subclass = true};
  if (is_subtype(type, PyFloat_Type)) return {.kind = Kind::real};
  if (nb::hasattr(type, "__dataclass_fields__")) {
    std::vector<nb::object> names;
    for (const nb::handle field : nb::module_::import_("dataclasses").attr("fields")(type))
      names.emplace_back(field.attr("name"));
    return {.kind = Kind::dataclass, .fields = tuple_of(names)};
  }
  // NumPy's str_ and bytes_ have the protocols of arrays; they are fixed, as Python's.
  if (is_subtype(type, PyUnicode_Type) || is_subtype(type, PyBytes_Type)) return {};
  const bool is_number = nb::hasattr(type, "__index__") && !nb::hasattr(type, "__len__");
  const bool has_elements = nb::hasattr(type, "__dlpack__") ||
                            nb::hasattr(type, "__array_interface__") ||
                            nb::hasattr(type, "__array__");
  // NumPy's integers and bools are fixed, as Python's; its arrays have __index__ too, but a length.
  const bool is_fixed_number =
      is_number || nb::cast<std::string>(nb::str(type.attr("__name__"))) == "bool_";
  if (has_elements && !is_fixed_number) return {.kind = Kind::array};
  return {.kind = Kind::fixed};
}

void* slot_of(nb::handle type, int slot) {
  return PyType_GetSlot(reinterpret_cast<PyTypeObject*>(type.ptr()), slot);
}

bool compares_as(nb::handle type, PyTypeObject& other) {
  return slot_of(type, Py_tp_richcompare) == PyType_GetSlot(&other, Py_tp_richcompare);
}

/// Whether a class adds something to a value of Python's own, but no other equality.
template <class... Base>
bool adds_to(nb::handle type, Base&... base) {
  return ((is_subtype(type, base) && compares_as(type, base)) || ...);
}

/// Whether a class is the standard library's or NumPy's.
bool is_known_library(nb::handle type) {
  const auto module = nb::cast<std::string>(nb::str(nb::getattr(type, "__module__", nb::str(""))));
  const std::string package = module.substr(0, module.find('.'));
  const nb::object standard = nb::module_::import_("sys").attr("stdlib_module_names");
  return package == "numpy" ||
         PySequence_Contains(standard.ptr(), nb::str(package.c_str()).ptr()) == 1;
}

/// When two values of a class are one fixed value. What a class of a user's says of equality may be
/// loose.
Same same_of(nb::handle type, Kind kind) {
  const auto is = [&](PyTypeObject& of) { return type.ptr() == reinterpret_cast<PyObject*>(&of); };
  if (kind == Kind::module || compares_as(type, PyBaseObject_Type) ||
      is_subtype(type, class_named("enum", "Enum")))
    return Same::object;
  if (is(PyFloat_Type)) return Same::bits;
  if (is(PyBool_Type) || is(PyLong_Type) || is(PyUnicode_Type) || is(PyBytes_Type) ||
      is(class_named("types", "MethodType")) || is(class_named("types", "BuiltinMethodType")) ||
      type.is(types().method) || type.is(types().device))
    return Same::value;
  // Values that a library gives do not change; and of two that are equal all parts may yet differ.
  if (is_known_library(type)) {
    const bool is_number = nb::hasattr(type, "__index__");  // of NumPy: the same, and quicker
    return is_number ? Same::value : Same::parts;
  }
  const bool has_parts =
      kind == Kind::dataclass || adds_to(type, PyLong_Type, PyUnicode_Type, PyBytes_Type,
                                         PyFloat_Type, PyTuple_Type, PyFrozenSet_Type);
  return has_parts ? Same::parts : Same::object;
}

Class completed(Class what, nb::handle type) {
  what.same = same_of(type, what.kind);
  what.is_hashable =
      slot_of(type, Py_tp_hash) != reinterpret_cast<void*>(PyObject_HashNotImplemented);
  what.has_attributes = nb::cast<int64_t>(type.attr("__dictoffset__")) != 0;
  return what;
}

}  // namespace

const Class& class_of_type(nb::handle type) {
  auto& known = known_classes();
  const auto found = known.find(type.ptr());
  if (found != known.end()) return found->second.what;
  return remember(type.ptr(), completed(make_class(type), type));
}

const Class& class_of_value(nb::handle value) {
  return class_of_type(type_of(value));
}

bool is_plain(nb::handle value) {
  const Kind kind = class_of_value(value).kind;
  return kind == Kind::boolean || kind == Kind::integer || kind == Kind::real ||
         kind == Kind::text || kind == Kind::none;
}

void bind_classes(nb::module_& m) {
  m.def(
      "register_pytree",
      [](nb::handle type, nb::object flatten, nb::object unflatten) {
        if (!PyType_Check(type.ptr())) throw_type({"register_pytree", "cls", type}, "a class");
        const nb::object functions = nb::make_tuple(flatten, unflatten);
        Class what = {.kind = Kind::registered};
        if (PyObject_SetAttrString(type.ptr(), registered_name, functions.ptr()) != 0) {
          PyErr_Clear();  // a class of C, which does not end
          what.functions = functions;
        }
        remember(type.ptr(), completed(std::move(what), type));
      },
      nb::arg("cls"), nb::arg("flatten"), nb::arg("unflatten"),
      nb::sig(
          "def register_pytree(cls: type, flatten: collections.abc.Callable[[typing.Any], "
          "tuple[collections.abc.Iterable[typing.Any], typing.Any]], unflatten: "
          "collections.abc.Callable[[typing.Any, tuple[typing.Any, ...]], typing.Any]) -> None"),
      "Makes instances of a class structures: flatten(x) returns (children, aux), where aux is\n"
      "hashable, and unflatten(aux, children) makes one again.");
  // Before modules are taken down: what users registered would keep them.
  m.def("_forget_classes", [] { known_classes().clear(); });
  nb::module_::import_("atexit").attr("register")(m.attr("_forget_classes"));
}

}  // namespace nitinol::python
