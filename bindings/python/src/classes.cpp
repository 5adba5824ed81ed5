// How values of each class are taken apart, looked up by type.
#include "bindings/python/src/errors.h"
#include "bindings/python/src/walk.h"

#include <fmt/format.h>

#include <bit>
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
  const nb::module_ ext = nb::module_::import_("nitinol._ext");
  if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()),
                       reinterpret_cast<PyTypeObject*>(ext.attr("ModuleBase").ptr())) != 0)
    return {.kind = Kind::module};
  if (is_namedtuple(type)) return {.kind = Kind::named_tuple};
  // Subclasses as their bases: an OrderedDict, a float of NumPy. (Those of int and str stay what
  // they are: enums.)
  if (is_subtype(type, PyDict_Type)) {
    Class made = {.kind = Kind::dict, .is_subclass = true};
    nb::object ordered = nb::module_::import_("collections").attr("OrderedDict");
    if (is_subtype(type, *reinterpret_cast<PyTypeObject*>(ordered.ptr())))
      made.ordered = std::move(ordered);
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

}  // namespace

const Class& class_of_type(nb::handle type) {
  auto& known = known_classes();
  const auto found = known.find(type.ptr());
  if (found != known.end()) return found->second.what;
  return remember(type.ptr(), make_class(type));
}

const Class& class_of_value(nb::handle value) {
  return class_of_type(type_of(value));
}

bool is_plain(nb::handle value) {
  const Kind kind = class_of_value(value).kind;
  return kind == Kind::boolean || kind == Kind::integer || kind == Kind::real ||
         kind == Kind::text || kind == Kind::none;
}

uint64_t Interned::number_of(nb::handle value, Kind kind) {
  // A str is its own key: no other key is one. Floats are told apart by their bits: 0.0 == -0.0.
  nb::object key = nb::borrow(value);
  if (kind == Kind::real)
    key = nb::make_tuple(nb::handle(type_of(value)),
                         std::bit_cast<uint64_t>(PyFloat_AsDouble(value.ptr())));
  else if (kind != Kind::text)
    key = nb::make_tuple(nb::handle(type_of(value)), value);
  if (PyObject* found = PyDict_GetItemWithError(table_.ptr(), key.ptr()))
    return PyLong_AsUnsignedLongLong(found);
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  const uint64_t number = ++last_;
  table_[key] = number;
  return number;
}

void bind_classes(nb::module_& m) {
  m.def(
      "register_pytree",
      [](nb::handle type, nb::object flatten, nb::object unflatten) {
        if (!PyType_Check(type.ptr())) throw_type({"register_pytree", "cls", type}, "a class");
        remember(type.ptr(), {.kind = Kind::registered,
                              .fields = {},
                              .flatten = std::move(flatten),
                              .unflatten = std::move(unflatten)});
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
