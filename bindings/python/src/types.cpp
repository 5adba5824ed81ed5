// DType and Device.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/function.h"

#include <fmt/format.h>

namespace nitinol::python {

void bind_types(nb::module_& m) {
  nb::enum_<DType> dtype(m, "DType",
                         "The type of a tensor's elements: nitinol.float32 and others.");
  for (int i = 0; i < dtype_count; ++i) {
    const auto value = static_cast<DType>(i);
    // `bool` is a name of Python.
    const std::string name = value == boolean ? "bool_" : std::string(name_of(value));
    dtype.value(name.c_str(), value);
    m.attr(name.c_str()) = dtype.attr(name.c_str());
  }
  types().dtype = dtype;
  m.attr("bool") = dtype.attr("bool_");
  dtype.def("__repr__", [](DType value) { return fmt::format("nitinol.{}", name_of(value)); })
      .def("__str__", [](DType value) { return std::string(name_of(value)); })
      .def_prop_ro(
          "itemsize", [](DType value) { return size_of(value); }, "Bytes of one element.")
      .def_prop_ro(
          "is_floating", [](DType value) { return is_floating(value); },
          "Whether it is float16, bfloat16, float32 or float64.")
      .def_prop_ro(
          "is_integer", [](DType value) { return is_integer(value); },
          "Whether it is an integer, signed or not; bool is none.")
      .def_prop_ro(
          "dtype",
          [](DType value) {
            return nb::object(nb::module_::import_("nitinol._numpy")
                                  .attr("dtype_of")(std::string(name_of(value))));
          },
          nb::sig("def dtype(self) -> typing.Any"),
          "NumPy's dtype, which NumPy asks for by this name.");

  static Signature constructor("Device", {"name"}, 0, 1, 0);
  constructor.intern();
  nb::class_<Device> device(m, "Device", nb::is_final(), "Where a tensor lives: Device('cuda:0').");
  types().device = device;
  device
      .def("__init__",
           with_arguments<1, Device*>(constructor,
                                      [](Device* self, const Arguments& given) {
                                        new (self) Device(given.get_or(0, Device{}));
                                      }),
           nb::sig("def __init__(self, name: DeviceLike = 'cpu') -> None"))
      .def_prop_ro(
          "index", [](const Device& self) { return static_cast<int>(self.index); },
          "Which of its kind: 0 of cuda:0.")
      .def_prop_ro(
          "kind",
          [](const Device& self) {
            const std::string text = describe(self);
            return text.substr(0, text.find(':'));
          },
          "'cpu', 'cuda' or 'reference'.")
      .def("__repr__",
           [](const Device& self) { return fmt::format("Device('{}')", describe(self)); })
      .def("__str__", [](const Device& self) { return describe(self); })
      .def("__hash__",
           [](const Device& self) {
             return static_cast<int64_t>(self.kind) * 256 + static_cast<int64_t>(self.index);
           })
      .def(
          "__eq__",
          [](const Device& self, nb::handle other) {
            if (other.type().is(types().device)) return self == nb::cast<Device>(other);
            if (!PyUnicode_Check(other.ptr())) return false;
            return device_named(nb::cast<std::string>(nb::str(other))) == self;
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__reduce__", [](const Device& self) {
        return nb::make_tuple(types().device, nb::make_tuple(describe(self)));
      });
  m.def(
      "_dtype_of",
      [](const std::string& where, nb::handle value) {
        return convert<DType>({where.c_str(), "an argument", value});
      },
      nb::arg("where"), nb::arg("value").none());
  m.def(
      "promote",
      [](nb::handle a, nb::handle b) {
        const auto first = convert<DType>({"promote", "a", a});
        return promote(first, convert<DType>({"promote", "b", b}));
      },
      nb::arg("a"), nb::arg("b"), nb::sig("def promote(a: DTypeLike, b: DTypeLike) -> DType"),
      "The dtype in which two dtypes meet.");
  m.def(
      "_promote_in",
      [](const std::string& where, DType a, DType b) {
        try {
          return promote(a, b);
        } catch (const Error& error) {
          throw_python(class_of(error.kind()), message_of(error, where.c_str()));
        }
      },
      nb::arg("where"), nb::arg("a"), nb::arg("b"));
  m.def(
      "_broadcast_shapes",
      [](const nb::args& given) {
        std::vector<Shape> shapes;
        for (const nb::handle shape : given)
          shapes.push_back(convert<Dims>({"broadcast_shapes", "a shape", shape}));
        return to_python(broadcast_shapes(shapes));
      },
      nb::arg("shapes"));
}

}  // namespace nitinol::python
