// Tensor and Scalar in Python: operators are slots of their types, which Python calls without a
// search for a method.
#include "bindings/python/src/array.h"
#include "bindings/python/src/bind.h"
#include "bindings/python/src/borrowed.h"
#include "bindings/python/src/compile.h"
#include "bindings/python/src/display.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/index.h"
#include "bindings/python/src/operators.h"
#include "bindings/python/src/tape.h"

#include <fmt/format.h>

namespace nitinol::python {
namespace {

/// str(x), what print(x) shows.
std::string text_of(Tensor x) {
  if (!x.is_defined()) return "Tensor(undefined)";
  note_read(x, "print()");
  return computed(x.size(), [&] { return to_string(x); });
}

/// repr(x), which looks at no element while it is recorded: debuggers and messages ask for it.
std::string brief_text_of(Tensor x) {
  if (!x.is_defined() || !tracer::is_recording()) return text_of(x);
  return fmt::format("Tensor({}, being recorded)", describe(x));
}

nb::object number_in(Tensor x) {
  const DType dtype = x.dtype();
  if (dtype == boolean) return nb::cast(x.item<bool>());
  if (dtype == u64) return nb::cast(x.item<uint64_t>());
  if (is_integer(dtype)) return nb::cast(x.item<int64_t>());
  return nb::cast(x.item<double>());
}

template <class T>
nb::object nested(const std::vector<T>& values, const Shape& shape, int axis, std::size_t& next) {
  if (axis == shape.size()) return nb::cast(static_cast<T>(values[next++]));
  nb::list list;
  for (int64_t i = 0; i < shape[axis]; ++i) list.append(nested(values, shape, axis + 1, next));
  return list;
}

nb::object to_list(Tensor x) {
  note_read(x, "tolist()");
  const auto read = [&]<class T>(const Tensor& from) {
    std::size_t next = 0;
    const std::vector<T> values = from.to_vector<T>();
    return nested(values, x.shape(), 0, next);
  };
  if (x.dtype() == boolean) {
    const std::vector<uint8_t> values = x.to(u8).to_vector<uint8_t>();
    const std::vector<bool> bools(values.begin(), values.end());
    std::size_t next = 0;
    return nested(bools, x.shape(), 0, next);
  }
  if (x.dtype() == u64) return read.operator()<uint64_t>(x);
  if (is_integer(x.dtype())) return read.operator()<int64_t>(x.to(i64));
  return read.operator()<double>(x.to(f64));
}

// ---- slots

PyObject* subscript(PyObject* self, PyObject* key) {
  try {
    Tensor part = get_plain_item(*nb::inst_ptr<Tensor>(self), key);
    if (!part.is_defined()) part = get_item(tensor_in(self), key);
    return to_python(std::move(part)).release().ptr();
  } catch (...) {
    return raised();
  }
}

int assign_subscript(PyObject* self, PyObject* key, PyObject* value) {
  try {
    if (value == nullptr) throw_python(PyExc_TypeError, "elements of a Tensor cannot be deleted");
    const Tensor old = tensor_in(self);
    check_assignable(old);
    rebind(self, set_item(old, key, value));
    return 0;
  } catch (...) {
    raised();
    return -1;
  }
}

/// value in x: whether an element, or a row, broadcast, is equal.
int contains(PyObject* self, PyObject* value) {
  try {
    const nb::object equal = nb::steal(PyObject_RichCompare(self, value, Py_EQ));
    if (!equal.is_valid()) throw nb::python_error();
    const nb::object any = is_tensor(equal) ? equal.attr("any")() : equal;
    const int found = PyObject_IsTrue(any.ptr());
    if (found < 0) throw nb::python_error();
    return found;
  } catch (...) {
    raised();
    return -1;
  }
}

Py_ssize_t length(PyObject* self) {
  const Tensor x = tensor_in(self);
  if (x.rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(x.shape()[0]);
}

enum class Order : bool { forwards, backwards };

/// An iterator over x[0], x[1], ...
nb::object rows_of(const Tensor& x, Order order) {
  if (x.rank() == 0) throw_python(PyExc_TypeError, "iteration over a 0-d tensor");
  nb::list rows;
  const int64_t count = x.shape()[0];
  for (int64_t i = 0; i < count; ++i)
    rows.append(to_python(x[order == Order::forwards ? i : count - 1 - i]));
  return nb::steal(PyObject_GetIter(rows.ptr()));
}

PyObject* iterate(PyObject* self) {
  try {
    return rows_of(tensor_in(self), Order::forwards).release().ptr();
  } catch (...) {
    return raised();
  }
}

PyObject* as_index(PyObject* self) {
  try {
    const Tensor x = tensor_in(self);
    if (!is_integer(x.dtype()) || x.rank() != 0) {
      throw_python(PyExc_TypeError,
                   fmt::format("{} is no index: only 0-d tensors of integers are", describe(x)));
    }
    return number_in(x).release().ptr();
  } catch (...) {
    return raised();
  }
}

Py_hash_t hash_of(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4);
}

Tensor tensor_from(nb::handle value) {
  const nb::object made = nb::module_::import_("nitinol._ext").attr("asarray")(value);
  return tensor_in(made);
}

Scalar scalar_from(nb::handle value) {
  return convert<Scalar>({"Scalar", "value", value});
}

constexpr char tensor_name[] = "Tensor", scalar_name[] = "Scalar", obj[] = "obj",
               value_name[] = "value";

int traverse_tensor(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Tensor& tensor = *nb::inst_ptr<Tensor>(self);
  if (const int stopped = traverse_owner(tensor, visit, arg)) return stopped;
  return traverse_tape(tensor, visit, arg);
}

const PyType_Slot tensor_slots[] = {
    NITINOL_SLOT(Py_tp_new, (&slots::make<Tensor, &tensor_from, tensor_name, obj>)),
    NITINOL_SLOT(Py_tp_init, slots::no_init),
    NITINOL_OPERATOR_SLOTS,
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(assign_subscript)},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_sq_contains, reinterpret_cast<void*>(contains)},
    {Py_tp_iter, reinterpret_cast<void*>(iterate)},
    {Py_nb_index, reinterpret_cast<void*>(as_index)},
    {Py_tp_hash, reinterpret_cast<void*>(hash_of)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_tensor)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {0, nullptr}};
/// isinstance(s, float) is what it is for the number that was given; type(s) is Scalar.
PyObject* class_of_scalar(PyObject* self, void*) {
  const bool is_real = nb::inst_ready(self) && scalar_in(self).kind() == Scalar::Kind::real;
  return Py_NewRef(is_real ? reinterpret_cast<PyObject*>(&PyFloat_Type) : type_of(self));
}
PyGetSetDef scalar_attributes[] = {{"__class__", class_of_scalar, nullptr, nullptr, nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};

const PyType_Slot scalar_slots[] = {
    NITINOL_SLOT(Py_tp_new, (&slots::make<Scalar, &scalar_from, scalar_name, value_name>)),
    NITINOL_SLOT(Py_tp_init, slots::no_init),
    {Py_tp_getset, scalar_attributes},
    NITINOL_OPERATOR_SLOTS,
    {0, nullptr}};

Tensor reversed_axes(const Tensor& x) {
  Dims order;
  for (int i = x.rank(); i-- > 0;) order.push_back(i);
  return permute(x, order);
}

/// x.to(device), x.to(dtype), x.to(device, dtype).
Tensor moved(Tensor result, nb::args targets) {
  for (const nb::handle target : targets) {
    const bool is_device = target.type().is(types().device) ||
                           (PyUnicode_Check(target.ptr()) &&
                            device_named(nb::cast<std::string>(nb::str(target))).has_value());
    if (is_device) {
      const auto device = convert<Device>({"to", "the target", target});
      result = computed(long_work, [&] { return result.to(device); });
    } else {
      const auto dtype = convert<DType>({"to", "the target", target});
      result = computed(result.size(), [&] { return result.to(dtype); });
    }
  }
  return result;
}

Tensor tensor_of_bytes(DType dtype, nb::handle shape, nb::bytes bytes) {
  const Spec spec = {.dtype = dtype,
                     .shape = convert<Dims>({"unpickling a Tensor", "the shape", shape}),
                     .is_weak = false,
                     .device = default_device()};
  const std::span<const char> all(bytes.c_str(), bytes.size());
  bool fits = all.size() % size_of(dtype) == 0;
  std::size_t left = all.size() / size_of(dtype);
  for (const int64_t size : spec.shape) fits = fits && size >= 0;
  fits = fits && element_count(spec.shape) == static_cast<int64_t>(left);
  if (!fits) {
    throw Error(ErrorKind::value, {.where = "unpickling a Tensor",
                                   .what = "the bytes are not those of the shape",
                                   .expected = describe(spec),
                                   .got = fmt::format("{} bytes", all.size())});
  }
  return from_bytes(std::as_bytes(all), spec);
}

/// A Scalar's number: a look at it.
nb::object look_at(const Scalar& scalar, const char* what) {
  note_look(scalar, what);
  if (scalar.kind() == Scalar::Kind::real) return nb::cast(scalar.to_double());
  if (scalar.kind() == Scalar::Kind::boolean) return nb::cast(scalar.to_integer() != 0);
  return scalar.is_beyond_int64() ? nb::cast(scalar.bits()) : nb::cast(scalar.to_integer());
}

/// What of a Scalar needs the number itself: each is a look (core/scalar_value.h).
void bind_looks(nb::class_<Scalar>& scalar) {
  scalar
      .def(
          "item", [](const Scalar& self) { return look_at(self, "item()"); },
          nb::sig("def item(self) -> float | int | bool"),
          "The number. A compiled function that asks for it is recorded for this number.")
      .def("__str__", [](const Scalar& self) { return nb::str(look_at(self, "str()")); })
      .def("__repr__",
           [](const Scalar& self) {
             const nb::object number = look_at(self, "repr()");
             return "Scalar(" + nb::cast<std::string>(nb::repr(number)) + ")";
           })
      .def("__hash__",
           [](const Scalar& self) {
             const Py_hash_t hash = PyObject_Hash(look_at(self, "hash()").ptr());
             if (hash == -1) throw nb::python_error();
             return hash;
           })
      .def(
          "__format__",
          [](const Scalar& self, nb::str spec) {
            return nb::str(look_at(self, "format()").attr("__format__")(spec));
          },
          nb::sig("def __format__(self, spec: str, /) -> str"))
      .def(
          "__round__",
          [](const Scalar& self, nb::handle digits) {
            return nb::object(look_at(self, "round()").attr("__round__")(digits));
          },
          nb::arg("ndigits") = nb::none(),
          nb::sig("def __round__(self, ndigits: int | None = None) -> typing.Any"))
      .def(
          "__getattr__",
          [](nb::handle self, nb::str name) -> nb::object {
            // What a float has besides: is_integer(), hex(), ...
            const nb::handle real(reinterpret_cast<PyObject*>(&PyFloat_Type));
            const bool is_real = scalar_in(self).kind() == Scalar::Kind::real;
            if (!is_real || !nb::hasattr(real, name)) {
              throw_python(PyExc_AttributeError,
                           fmt::format("'Scalar' object has no attribute '{}'", name.c_str()));
            }
            return look_at(scalar_in(self), "an attribute of float").attr(name);
          },
          nb::sig("def __getattr__(self, name: str, /) -> typing.Any"));
}

void bind_scalar(nb::module_& m) {
  nb::class_<Scalar> scalar(
      m, "Scalar", nb::type_slots(scalar_slots), nb::is_final(),
      "Scalar(value)\n--\n\nA number that a compiled function takes as an argument: another one "
      "compiles nothing.\n\nA float argument is one; Scalar(3) makes one of "
      "an int, which else is a fixed part of the call.");
  scalar.attr("__array_ufunc__") = nb::none();
  scalar.attr("__array_priority__") = 999;
  types().scalar = scalar;
  bind_looks(scalar);
  scalar.def("__copy__", [](const Scalar& self) { return self; })
      .def(
          "__deepcopy__", [](const Scalar& self, nb::handle) { return self; },
          nb::arg("memo").none())
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(types().scalar, nb::make_tuple(self.attr("item")()));
      });
}

// Methods take the Tensor by value, as tensor_in() gives it.
// NOLINTBEGIN(performance-unnecessary-value-param)

void bind_attributes(nb::class_<Tensor>& tensor) {
  tensor
      .def_prop_ro(
          "shape", [](Tensor x) { return to_python(x.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The size of each axis.")
      .def_prop_ro("dtype", &Tensor::dtype, "The type of the elements.")
      .def_prop_ro("device", &Tensor::device, "Where the elements lie.")
      .def_prop_ro("ndim", &Tensor::rank, "Number of axes.")
      .def_prop_ro("size", &Tensor::size, "Number of elements.")
      .def_prop_ro(
          "itemsize", [](Tensor x) { return size_of(x.dtype()); }, "Bytes of one element.")
      .def_prop_ro(
          "nbytes",
          [](Tensor x) { return static_cast<std::size_t>(x.size()) * size_of(x.dtype()); },
          "Bytes of all elements.")
      .def_prop_ro(
          "strides", [](Tensor x) { return to_python(x.strides()); },
          nb::sig("def strides(self) -> tuple[int, ...]"), "In elements.")
      .def_prop_ro(
          "at", [](Tensor x) { return parts_of(std::move(x)); }, nb::sig("def at(self) -> _Parts"),
          "x.at[key].set(value), and .add, .multiply, .min, .max: the whole tensor with a part "
          "changed; x stays as it is.")
      .def_prop_ro(
          "T", [](Tensor x) { return to_python(reversed_axes(x)); },
          nb::sig("def T(self) -> Tensor"), "The axes in reverse order.")
      .def_prop_ro(
          "mT", [](Tensor x) { return to_python(transpose(x)); }, nb::sig("def mT(self) -> Tensor"),
          "The last two axes exchanged.")
      .def_prop_ro("tracks_gradient", &Tensor::tracks_gradient,
                   "Whether gradients flow through this tensor.");
}

void bind_methods(nb::class_<Tensor>& tensor) {
  tensor
      .def("item", number_in, nb::sig("def item(self) -> float | int | bool"),
           "The one element. Inside a compiled function this ends the trace.")
      .def("tolist", to_list, nb::sig("def tolist(self) -> typing.Any"),
           "The elements as lists of lists of numbers; of one without axes the number.")
      .def("to", moved, nb::sig("def to(self, *targets: DeviceLike | DTypeLike) -> Tensor"),
           "The same values on another device, or as another dtype.")
      .def(
          "cpu", [](Tensor x) { return to_python(x.to(Device{})); },
          nb::sig("def cpu(self) -> Tensor"), "The same values in the host's memory.")
      .def(
          "to_device",
          [](Tensor x, nb::handle device, nb::handle) {
            return to_python(x.to(convert<Device>({"to_device", "device", device})));
          },
          nb::arg("device"), nb::kw_only(), nb::arg("stream") = nb::none(),
          nb::sig("def to_device(self, device: DeviceLike, /, *, stream: None = None) -> Tensor"),
          "The same values on another device, by the name that the Array API standard has for it.")
      .def(
          "reshape",
          [](Tensor x, nb::args shape) {
            // x.reshape(2, 3) and x.reshape((2, 3))
            const nb::object given = nb::len(shape) == 1 ? nb::object(shape[0]) : shape;
            return to_python(reshape(x, convert<Dims>({"reshape", "shape", given})));
          },
          nb::sig("def reshape(self, *shape: int | collections.abc.Sequence[int]) -> Tensor"),
          "The elements in row-major order as another shape; one size may be -1.")
      .def(
          "detach", [](Tensor x) { return to_python(stop_gradient(x)); },
          nb::sig("def detach(self) -> Tensor"), "The same value, for which no gradient flows.")
      .def(
          "backward",
          [](Tensor x, nb::handle seed) {
            const auto weights = convert<std::optional<Tensor>>({"backward", "seed", seed});
            const PlaceScope place(python_place);  // of a warning
            const Unlocked release;
            weights ? x.backward(*weights) : x.backward();
          },
          nb::arg("seed") = nb::none(),
          nb::sig("def backward(self, seed: TensorLike | None = None) -> None"),
          "Adds the gradient of this tensor to the grad of every parameter it was computed from.");
}

/// x.view(2, 3) and x.view((2, 3)).
template <Tensor (*function)(const Tensor&, const Dims&)>
void bind_with_sizes(nb::class_<Tensor>& tensor, const char* name, const char* what,
                     const char* signature, const char* doc) {
  tensor.def(
      name,
      [name, what](Tensor x, nb::args sizes) {
        const nb::object given = nb::len(sizes) == 1 ? nb::object(sizes[0]) : sizes;
        return to_python(function(x, convert<Dims>({name, what, given})));
      },
      nb::sig(signature), doc);
}

void bind_cast(nb::class_<Tensor>& tensor, const char* name, DType dtype, const char* signature) {
  tensor.def(
      name,
      [dtype](Tensor x) { return to_python(computed(x.size(), [&] { return x.to(dtype); })); },
      nb::sig(signature), "The same values as that dtype.");
}

/// What PyTorch's users write out of habit.
void bind_habits(nb::class_<Tensor>& tensor) {
  bind_with_sizes<reshape>(tensor, "view", "shape",
                           "def view(self, *shape: int | collections.abc.Sequence[int]) -> Tensor",
                           "reshape()");
  bind_with_sizes<permute>(
      tensor, "permute", "axes",
      "def permute(self, *axes: int | collections.abc.Sequence[int]) -> Tensor",
      "The axes in that order: permute_dims().");
  bind_with_sizes<expand>(tensor, "expand", "shape",
                          "def expand(self, *shape: int | collections.abc.Sequence[int]) -> Tensor",
                          "Axes of size 1 repeated: broadcast_to().");
  tensor
      .def(
          "transpose",
          [](Tensor x, nb::args axes) {
            if (nb::len(axes) == 0) return to_python(reversed_axes(x));
            const bool is_pair = nb::len(axes) == 2;
            const nb::object given = nb::len(axes) == 1 ? nb::object(axes[0]) : axes;
            const Dims order = convert<Dims>({"transpose", "axes", given});
            return to_python(is_pair ? transpose(x, order[0], order[1]) : permute(x, order));
          },
          nb::sig("def transpose(self, *axes: int | collections.abc.Sequence[int]) -> Tensor"),
          "All axes in that order, or reversed if none is given, as NumPy's; two of them "
          "exchanged, "
          "as PyTorch's.")
      .def(
          "clone", [](Tensor x) { return to_python(x); }, nb::sig("def clone(self) -> Tensor"),
          "The same value, which never changes: an object of its own.")
      .def(
          "contiguous", [](Tensor x) { return to_python(x); },
          nb::sig("def contiguous(self) -> Tensor"),
          "The same value; where it lies is ours to say.")
      .def(
          "numel", [](Tensor x) { return x.size(); }, nb::sig("def numel(self) -> int"),
          "Number of elements.")
      .def(
          "dim", [](Tensor x) { return x.rank(); }, nb::sig("def dim(self) -> int"),
          "Number of axes.");
  bind_cast(tensor, "float", f32, "def float(self) -> Tensor");
  bind_cast(tensor, "double", f64, "def double(self) -> Tensor");
  bind_cast(tensor, "half", f16, "def half(self) -> Tensor");
  bind_cast(tensor, "int", i32, "def int(self) -> Tensor");
  bind_cast(tensor, "long", i64, "def long(self) -> Tensor");
  bind_cast(tensor, "bool", boolean, "def bool(self) -> Tensor");
}

/// What Python and other libraries ask for.
void bind_protocols(nb::module_& m, nb::class_<Tensor>& tensor) {
  tensor.def("__repr__", brief_text_of)
      .def("__str__", text_of)
      .def(
          "_repr_html_",
          [](Tensor x) {
            const std::string text = brief_text_of(x);
            return x.is_defined() ? html_of("tensor", x.spec(), text) : "<pre>" + text + "</pre>";
          },
          "For notebooks: dtype, shape, device, bytes, and the elements as print() abbreviates "
          "them.")
      .def(
          "__format__",
          [](Tensor x, nb::str spec) -> nb::object {
            if (nb::len(spec) == 0) return nb::str(text_of(x).c_str());
            if (x.size() != 1) {
              throw_python(PyExc_TypeError,
                           fmt::format("the format '{}' of {}: expected one element. Format x[i], "
                                       "or print the whole tensor.",
                                       spec.c_str(), describe(x)));
            }
            note_read(x, "a format");
            return number_in(x).attr("__format__")(spec);
          },
          nb::sig("def __format__(self, spec: str, /) -> str"))
      .def(
          "__reversed__", [](Tensor x) { return rows_of(x, Order::backwards); },
          nb::sig("def __reversed__(self) -> collections.abc.Iterator[Tensor]"))
      .def(
          "__copy__", [](Tensor x) { return to_python(x); },
          nb::sig("def __copy__(self) -> Tensor"))
      .def(
          "__deepcopy__", [](Tensor x, nb::handle) { return to_python(x); }, nb::arg("memo").none(),
          nb::sig("def __deepcopy__(self, memo: object, /) -> Tensor"))
      .def("__reduce__",
           [m](Tensor x) {
             return nb::make_tuple(
                 m.attr("_tensor_of_bytes"),
                 nb::make_tuple(x.dtype(), to_python(x.shape()), bytes_of(x, "pickling")));
           })
      .def(
          "__array_namespace__",
          [](nb::handle, nb::handle) { return nb::module_::import_("nitinol"); }, nb::kw_only(),
          nb::arg("api_version") = nb::none(),
          nb::sig("def __array_namespace__(self, /, *, api_version: str | None = None) -> "
                  "types.ModuleType"));
  // np.sin(t), array + t, array += t: what NumPy has a function for is done by ours.
  tensor.def(
      "__array_ufunc__",
      [](nb::handle, nb::args args, nb::kwargs keywords) {
        return nb::object(
            nb::module_::import_("nitinol._numpy").attr("array_ufunc")(*args, **keywords));
      },
      nb::sig("def __array_ufunc__(self, ufunc: typing.Any, method: str, *inputs: typing.Any, "
              "**keywords: typing.Any) -> typing.Any"));
  tensor.attr("__array_priority__") = 1000;
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor> tensor(m, "Tensor", nb::type_slots(tensor_slots), nb::is_final(),
                            nb::is_weak_referenceable(),
                            "Tensor(obj)\n--\n\nAn n-dimensional array value.\n\nNo operation "
                            "changes a Tensor that exists; x[i] = v gives "
                            "the object x another value.");
  types().tensor = tensor;
  bind_parts(m);
  bind_attributes(tensor);
  bind_methods(tensor);
  bind_habits(tensor);
  bind_protocols(m, tensor);
  m.def("_tensor_of_bytes", [](DType dtype, nb::handle shape, nb::bytes bytes) {
    return to_python(tensor_of_bytes(dtype, shape, bytes));
  });
  bind_scalar(m);
}

}  // namespace nitinol::python
