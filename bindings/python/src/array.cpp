#include "bindings/python/src/array.h"

#include "bindings/python/src/compile.h"
#include "bindings/python/src/errors.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>

#include <memory>

namespace nitinol::python {
namespace {

using Array = nb::ndarray<nb::ro>;
using Code = nb::dlpack::dtype_code;

struct ElementType {
  DType dtype;
  Code code;
  uint8_t bits;
  const char* format;  ///< of Python's buffers; null: they have none
};
constexpr ElementType element_types[] = {
    {f32, Code::Float, 32, "f"},       {f64, Code::Float, 64, "d"},   {i64, Code::Int, 64, "q"},
    {i32, Code::Int, 32, "i"},         {i16, Code::Int, 16, "h"},     {i8, Code::Int, 8, "b"},
    {u8, Code::UInt, 8, "B"},          {boolean, Code::Bool, 8, "?"}, {f16, Code::Float, 16, "e"},
    {bf16, Code::Bfloat, 16, nullptr},
};

const ElementType& type_of(DType dtype) {
  for (const ElementType& type : element_types) {
    if (type.dtype == dtype) return type;
  }
  return element_types[0];
}

std::string text_of(nb::handle value) {
  return nb::cast<std::string>(nb::str(value));
}

[[noreturn]] void refuse_elements(const From& from, const std::string& name) {
  throw_python(class_of(ErrorKind::dtype),
               fmt::format("{}: {} is an array of {}; expected bool, uint8, int8 to int64, or a "
                           "floating type. Convert it first, as with .astype('int64').",
                           from.where, from.name, name));
}

DType dtype_of_array(const From& from, const nb::dlpack::dtype& dtype) {
  for (const ElementType& type : element_types) {
    if (dtype.lanes == 1 && dtype.code == static_cast<uint8_t>(type.code) &&
        dtype.bits == type.bits)
      return type.dtype;
  }
  const nb::object given = nb::getattr(from.value, "dtype", nb::str("another type"));
  refuse_elements(from, text_of(given));
}

std::string dtype_name(nb::handle array) {
  const nb::object dtype = nb::getattr(array, "dtype", nb::none());
  return dtype.is_none() ? "" : text_of(dtype);
}

/// The memory of `value`, or nothing.
bool import(nb::handle value, Array& array) {
  return nb::try_cast(value, array) && array.is_valid();
}

/// As `import`, after what makes more arrays fit.
Array imported(const From& from, Copy copy) {
  Array array;
  if (import(from.value, array)) return array;
  const std::string name = dtype_name(from.value);
  // A layout without element strides (fields of structures), another byte order, an __array__.
  if (copy == Copy::always) {
    for (const char* method : {"copy", "__array__"}) {
      if (!nb::hasattr(from.value, method)) continue;
      const nb::object made = from.value.attr(method)();
      if (!made.is(from.value) && import(made, array)) return array;
    }
  }
  if (!name.empty()) refuse_elements(from, name);
  throw_type(from, "an array");
}

bool is_row_major(const Array& array) {
  int64_t step = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != step) return false;
    step *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

/// Keeps the array until no tensor reads its memory.
std::function<void()> keeper_of(const Array& array) {
  nb::capsule owner(new Array(array),
                    [](void* held) noexcept { delete static_cast<Array*>(held); });
  PyObject* kept = owner.release().ptr();
  return [kept] { release_later(kept); };
}

/// Where its elements lie; never null.
const void* address_of(const Tensor& tensor) {
  static const uint64_t nothing = 0;
  const void* bytes = computed(tensor.size(), [&] { return tensor.read_bytes(); });
  return bytes == nullptr ? &nothing : bytes;
}

template <class... Framework>
nb::object exported(const Tensor& given) {
  note_read(given, "giving its memory to an array");
  const Tensor tensor = on_host(given);
  const void* bytes = address_of(tensor);
  std::array<std::size_t, max_rank> shape = {};
  std::array<int64_t, max_rank> strides = {};
  const auto rank = static_cast<std::size_t>(tensor.rank());
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i] = static_cast<std::size_t>(tensor.shape()[i]);
    strides[i] = tensor.strides()[i];
  }
  const ElementType& type = type_of(tensor.dtype());
  nb::capsule owner(new Tensor(tensor),
                    [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  return nb::cast(nb::ndarray<nb::ro, Framework...>(
      bytes, rank, shape.data(), owner, strides.data(),
      nb::dlpack::dtype{static_cast<uint8_t>(type.code), type.bits, 1}));
}

nb::object to_numpy(const Tensor& tensor) {
  if (tensor.dtype() == bf16) {
    throw Error(ErrorKind::unsupported, {.where = "numpy",
                                         .what = "NumPy has no bfloat16",
                                         .expected = {},
                                         .got = describe(tensor),
                                         .fix = "Use x.astype(nitinol.float32) first."});
  }
  return exported<nb::numpy>(tensor);
}

nb::object array_of(const Tensor& tensor, nb::handle dtype, nb::handle copy) {
  nb::object array = to_numpy(tensor);
  const bool must_copy = copy.is(Py_True);
  if (!dtype.is_none()) {
    const nb::object wanted = nb::module_::import_("numpy").attr("dtype")(dtype);
    if (!wanted.equal(array.attr("dtype"))) {
      if (copy.is(Py_False)) {
        throw Error(ErrorKind::value, {.where = "__array__",
                                       .what = "another dtype needs a copy",
                                       .expected = "copy=None or True",
                                       .got = "copy=False"});
      }
      return array.attr("astype")(wanted);
    }
  }
  return must_copy ? array.attr("copy")() : array;
}

nb::object dlpack_of(const Tensor& tensor, nb::kwargs options) {
  nb::dict given;
  for (const auto [name, value] : options) {
    const std::string key = text_of(name);
    if (key == "copy") {
      if (value.is(Py_True)) return dlpack_of(nitinol::copy(tensor), nb::borrow<nb::kwargs>(given));
    } else if (key == "dl_device") {
      if (!value.is_none() && !nb::borrow(value).equal(nb::make_tuple(1, 0))) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__: dl_device: only (1, 0), the host's memory");
        throw nb::python_error();
      }
    } else if (key != "stream") {
      given[name] = value;
    }
  }
  return exported<nb::array_api>(tensor).attr("__dlpack__")(**given);
}

/// A list of numbers, of lists of them, or of tensors.
struct Nested {
  std::vector<Scalar> numbers;
  Shape shape;
  bool has_real = false, has_integer = false;
};

void read_nested(const From& from, int depth, Nested& into) {
  const Deeper deeper;
  if (PyList_Check(from.value.ptr()) || PyTuple_Check(from.value.ptr())) {
    const auto size = static_cast<int64_t>(nb::len(from.value));
    if (depth == into.shape.size() && into.numbers.empty()) into.shape.push_back(size);
    if (depth >= into.shape.size() || into.shape[depth] != size) {
      throw_python(class_of(ErrorKind::shape),
                   fmt::format("{}: lists of one level differ in length at depth {} of {}",
                               from.where, depth, from.name));
    }
    for (const nb::object& element : parts::elements(from, "a list"))
      read_nested({from.where, from.name, element}, depth + 1, into);
    return;
  }
  if (depth != into.shape.size()) {
    throw_python(
        class_of(ErrorKind::shape),
        fmt::format("{}: {} mixes numbers and lists at depth {}", from.where, from.name, depth));
  }
  const auto number = convert<Scalar>(from);
  into.has_real |= number.kind() == Scalar::Kind::real;
  into.has_integer |= number.kind() == Scalar::Kind::integer;
  into.numbers.push_back(number);
}

bool holds_tensors(nb::handle value) {
  const Deeper deeper;
  if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) return false;
  for (const nb::handle element : nb::borrow(value)) {
    if (is_tensor(element) || is_variable(element) || is_array(element) || holds_tensors(element))
      return true;
  }
  return false;
}

Tensor stacked(const From& from) {
  const Deeper deeper;
  if (!PyList_Check(from.value.ptr()) && !PyTuple_Check(from.value.ptr()))
    return convert<Tensor>(from);
  std::vector<Tensor> parts;
  for (const nb::handle element : nb::borrow(from.value))
    parts.push_back(stacked({from.where, from.name, element}));
  return stack(parts);
}

Tensor from_numbers(const From& from, std::optional<DType> dtype, Device device) {
  if (holds_tensors(from.value)) {
    const Tensor made = stacked(from);
    return (dtype ? made.to(*dtype) : made).to(device);
  }
  Nested nested;
  read_nested(from, 0, nested);
  const DType own = nested.has_real || nested.numbers.empty() ? f32
                    : nested.has_integer                      ? i64
                                                              : boolean;
  const DType wanted = dtype.value_or(own);
  if (nested.numbers.size() == 1)
    return reshape(full({}, nested.numbers[0], wanted, device), nested.shape);
  const Spec spec = {.dtype = nested.has_real ? f64 : i64,
                     .shape = nested.shape,
                     .is_weak = false,
                     .device = device};
  std::vector<uint64_t> words;
  words.reserve(nested.numbers.size());
  for (const Scalar& number : nested.numbers)
    words.push_back(nested.has_real ? std::bit_cast<uint64_t>(number.to_double())
                                    : static_cast<uint64_t>(number.to_integer()));
  for (const Scalar& number : nested.numbers) {  // throws for what the dtype does not hold
    if (is_integer(wanted) && number.kind() == Scalar::Kind::integer)
      static_cast<void>(full({}, number, wanted, Device{}));
  }
  return from_bytes(std::as_bytes(std::span(words)), spec).to(wanted);
}

Tensor asarray(nb::handle obj, nb::handle dtype_given, nb::handle device_given, nb::handle copy) {
  const From from = {"asarray", "obj", obj};
  const auto dtype = convert<std::optional<DType>>({"asarray", "dtype", dtype_given});
  const auto device = convert<std::optional<Device>>({"asarray", "device", device_given});
  const bool never = copy.is(Py_False);
  Tensor made;
  if (is_tensor(obj) || is_variable(obj)) {
    made = convert<Tensor>(from);
  } else if (is_array(obj) || (PyObject_CheckBuffer(obj.ptr()) && !PyBytes_Check(obj.ptr()))) {
    made = from_array(from, never ? Copy::never : Copy::always);
  } else {
    if (never) throw_type(from, "an array, to read its memory without a copy (copy=False)");
    return from_numbers(from, dtype, device.value_or(default_device()));
  }
  if (dtype && *dtype != made.dtype()) {
    if (never) throw_type({"asarray", "dtype", dtype_given}, "the array's own, with copy=False");
    made = made.to(*dtype);
  }
  if (device) made = made.to(*device);
  return copy.is(Py_True) && is_tensor(obj) ? nitinol::copy(made) : made;
}

/// What a buffer of Python's is given out of.
struct Held {
  Tensor tensor;
  std::array<Py_ssize_t, max_rank> shape, strides;
};

}  // namespace

Tensor on_host(const Tensor& tensor) {
  return tensor.device().kind == Device::Kind::cuda ? tensor.to(Device{}) : tensor;
}

Tensor from_array(const From& from, Copy copy) {
  if (nb::getattr(from.value, "requires_grad", nb::none()).is(Py_True))
    throw_type(from, "an array whose gradient nobody waits for: .detach() it first");
  const From* source = &from;
  nb::object bits;
  From as_bits = from;
  const bool is_bfloat = dtype_name(from.value) == "bfloat16" && nb::hasattr(from.value, "view");
  if (is_bfloat && nb::hasattr(from.value, "__array_interface__")) {  // ml_dtypes' for NumPy
    bits = from.value.attr("view")("int16");
    as_bits.value = bits;
    source = &as_bits;
  }
  const Array array = imported(*source, copy);
  if (array.device_type() != nb::device::cpu::value) {
    throw_python(class_of(ErrorKind::device),
                 fmt::format("{}: {} lies in a device's memory; bring it to the host's first",
                             from.where, from.name));
  }
  Spec spec = {.dtype = source == &from ? dtype_of_array(from, array.dtype()) : bf16,
               .shape = {},
               .is_weak = false,
               .device = {}};
  Strides strides;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    spec.shape.push_back(static_cast<int64_t>(array.shape(i)));
    strides.push_back(array.stride(i));
  }
  const std::size_t width = size_of(spec.dtype);
  const auto elements = static_cast<std::size_t>(element_count(spec.shape));
  const bool is_aligned = reinterpret_cast<uintptr_t>(array.data()) % width == 0;
  if (copy == Copy::never) {
    if (!is_aligned) throw_type(from, "memory aligned to its elements, to read it without a copy");
    return borrow_bytes(array.data(), spec, strides, keeper_of(array));
  }
  spec.device = default_device();
  if (is_row_major(array) || elements == 0) {
    return computed(static_cast<int64_t>(elements), [&] {
      return from_bytes({static_cast<const std::byte*>(array.data()), elements * width}, spec);
    });
  }
  if (!is_aligned) {
    const nb::object made = from.value.attr("copy")();
    return from_array({from.where, from.name, made}, copy);
  }
  spec.device = {};
  const Tensor view = borrow_bytes(array.data(), spec, strides, keeper_of(array));
  return computed(view.size(), [&] { return nitinol::copy(view).to(default_device()); });
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    note_read(tensor_in(self), "giving its memory to a buffer");
    const Tensor tensor = on_host(tensor_in(self));
    const ElementType& type = type_of(tensor.dtype());
    if (type.format == nullptr) {
      PyErr_SetString(PyExc_BufferError, "Python's buffers have no bfloat16");
      return -1;
    }
    if ((flags & PyBUF_WRITABLE) != 0) {
      PyErr_SetString(PyExc_BufferError, "a Tensor's elements are never written");
      return -1;
    }
    auto held = std::make_unique<Held>(Held{tensor, {}, {}});
    const auto width = static_cast<Py_ssize_t>(size_of(tensor.dtype()));
    for (int i = 0; i < tensor.rank(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      held->shape[at] = tensor.shape()[i];
      held->strides[at] = tensor.strides()[i] * width;
    }
    view->buf = const_cast<void*>(address_of(tensor));  // NOLINT: read only, as it says
    view->len = tensor.size() * width;
    view->readonly = 1;
    view->itemsize = width;
    view->format = const_cast<char*>(type.format);  // NOLINT: never written
    view->ndim = tensor.rank();
    view->shape = held->shape.data();
    view->strides = held->strides.data();
    view->suboffsets = nullptr;
    view->internal = held.release();
    view->obj = nb::handle(self).inc_ref().ptr();
    return 0;
  } catch (...) {
    raised();
    view->obj = nullptr;
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<Held*>(view->internal);
}

void bind_arrays(nb::module_& m) {
  m.def(
      "asarray",
      [](nb::handle obj, nb::handle dtype, nb::handle device, nb::handle copy) {
        return to_python(asarray(obj, dtype, device, copy));
      },
      nb::arg("obj").none(), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
      nb::sig("def asarray(obj: object, /, *, dtype: DTypeLike | None = None, device: DeviceLike | "
              "None = None, copy: bool | None = None) -> Tensor"),
      "A tensor of numbers, nested lists of numbers or tensors, or an array of another library.\n\n"
      "Arrays are copied: a tensor is a value. With copy=False their memory is read, which must\n"
      "not be written as long as a tensor reads it.");
  m.def(
      "from_dlpack",
      [](nb::handle x, nb::handle device, nb::handle copy) {
        if (is_tensor(x)) return nb::borrow(x);
        Tensor made =
            from_array({"from_dlpack", "x", x}, copy.is(Py_False) ? Copy::never : Copy::always);
        const auto wanted = convert<std::optional<Device>>({"from_dlpack", "device", device});
        return to_python(wanted ? made.to(*wanted) : made);
      },
      nb::arg("x"), nb::kw_only(), nb::arg("device") = nb::none(), nb::arg("copy") = nb::none(),
      nb::sig(
          "def from_dlpack(x: object, /, *, device: DeviceLike | None = None, copy: bool | None "
          "= None) -> Tensor"),
      "A tensor of an array with __dlpack__; copied unless copy=False.");
  nb::object tensor = m.attr("Tensor");
  const auto method = [&](const char* name, auto&& function, auto&&... extra) {
    nb::cpp_function_def(function, nb::scope(tensor), nb::name(name), nb::is_method(), extra...);
  };
  method("numpy", to_numpy, nb::sig("def numpy(self) -> typing.Any"),
         "The elements as NumPy's array, which reads the same memory and cannot be written.");
  method("__array__", array_of, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
         nb::sig("def __array__(self, dtype: object = None, copy: bool | None = None) -> "
                 "typing.Any"));
  method("__dlpack__", dlpack_of, nb::sig("def __dlpack__(self, **options: object) -> typing.Any"));
  method(
      "__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); },
      nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));
}

}  // namespace nitinol::python
