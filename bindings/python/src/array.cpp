#include "bindings/python/src/array.h"

#include "bindings/python/src/borrowed.h"
#include "bindings/python/src/compile.h"
#include "bindings/python/src/dlpack.h"
#include "bindings/python/src/errors.h"

#include <fmt/format.h>

#include <memory>

namespace nitinol::python {
namespace {

/// Of ml_dtypes' bfloat16 for NumPy, which has no buffer: the bits.
std::optional<Foreign> bits_of(const From& from) {
  if (!nb::hasattr(from.value, "__array_interface__")) return {};
  const nb::object dtype = nb::getattr(from.value, "dtype", nb::none());
  if (nb::cast<std::string>(nb::str(dtype)) != "bfloat16") return {};
  const nb::object bits = from.value.attr("view")("int16");
  Foreign memory = read_buffer({from.where, from.name, bits});
  memory.dtype = bf16;
  return memory;
}

/// The memory of an array of another library. `copy`: always if the array may be asked to make one
/// that can be read.
Foreign memory_of(const From& from, Copy copy) {
  if (PyCapsule_CheckExact(from.value.ptr())) return read_capsule(from, from.value);
  const nb::handle type(type_of(from.value));
  const bool has_dlpack = nb::hasattr(type, "__dlpack__");
  if (PyObject_CheckBuffer(from.value.ptr()) != 0) {
    try {
      return read_buffer(from);
    } catch (nb::python_error&) {
      if (!has_dlpack) throw;
      if (std::optional<Foreign> bits = bits_of(from)) return *std::move(bits);
    }
  }
  if (has_dlpack) {
    if (nb::getattr(from.value, "requires_grad", nb::none()).is(Py_True))
      throw_type(from, "an array whose gradient nobody waits for: .detach() it first");
    try {
      return read_dlpack(from);
    } catch (nb::python_error& error) {
      // NumPy's, for types that DLPack has not.
      if (!error.matches(PyExc_BufferError) || !nb::hasattr(type, "__array_interface__")) throw;
      refuse_elements(from);
    }
  }
  if (copy == Copy::always && nb::hasattr(type, "__array__")) {
    const nb::object made = from.value.attr("__array__")();
    if (PyObject_CheckBuffer(made.ptr()) != 0) return read_buffer({from.where, from.name, made});
  }
  throw_type(from, "an array");
}

/// In elements; nothing if a step is not a whole number of them, or goes through pointers.
std::optional<Strides> element_strides(const Foreign& memory) {
  if (memory.suboffsets != nullptr) return {};
  const auto width = static_cast<int64_t>(size_of(memory.dtype));
  Strides strides = memory.strides;
  for (int i = 0; i < strides.size(); ++i) {
    if (memory.shape[i] > 1 && strides[i] % width != 0) return {};
    strides[i] /= width;
  }
  return strides;
}

/// Of ml_dtypes' type, a copy.
nb::object bfloats_in_numpy(const Tensor& tensor) {
  nb::object dtype;
  try {
    dtype = nb::module_::import_("nitinol._numpy").attr("dtype_of")("bfloat16");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw Error(ErrorKind::unsupported,
                {.where = "numpy",
                 .what = "NumPy has no bfloat16",
                 .expected = "the package ml_dtypes, which has",
                 .got = describe(tensor),
                 .fix = "Install it, or use x.astype(nitinol.float32) first."});
  }
  return nb::module_::import_("numpy")
      .attr("frombuffer")(bytes_of(tensor, "numpy()"), dtype)
      .attr("reshape")(to_python(tensor.shape()));
}

nb::object to_numpy(nb::handle self) {
  check_self(self, types().tensor);
  const Tensor tensor = tensor_in(self);
  if (tensor.dtype() == bf16) return bfloats_in_numpy(tensor);
  const nb::object view = nb::steal(PyMemoryView_FromObject(self.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  nb::object numpy;
  try {
    numpy = nb::module_::import_("numpy");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ModuleNotFoundError)) throw;
    throw Error(ErrorKind::unsupported,
                {.where = "numpy",
                 .what = "NumPy is not installed",
                 .fix = "Install it, or use x.tolist() or memoryview(x), which do without."});
  }
  return numpy.attr("asarray")(view);
}

nb::object array_of(nb::handle self, nb::handle dtype, nb::handle copy) {
  nb::object array = to_numpy(self);
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

/// What is read may be written by who reads it: PyTorch disregards that memory is not to be. So the
/// reader is given a copy, unless it asks for none.
nb::object dlpack_of(nb::handle self, nb::handle, nb::handle max_version, nb::handle device,
                     nb::handle copy) {
  check_self(self, types().tensor);
  const Tensor given = tensor_in(self);
  if (!device.is_none() && !nb::borrow(device).equal(nb::make_tuple(1, 0)))
    throw_python(PyExc_BufferError, "__dlpack__: dl_device: only (1, 0), the host's memory");
  note_read(given, "giving its memory to an array");
  const Tensor tensor = on_host(given);
  const auto versioned =
      !max_version.is_none() && convert<Dims>({"__dlpack__", "max_version", max_version})[0] >= 1
          ? Versioned::yes
          : Versioned::no;
  if (!copy.is(Py_False)) {
    const Tensor own = computed(tensor.size(), [&] { return nitinol::copy(tensor); });
    return capsule_of(own, versioned, true);
  }
  if (tensor.handle() != given.handle())
    throw_python(PyExc_BufferError, "__dlpack__: copy=False, but the memory is a device's");
  return capsule_of(tensor, versioned, false);
}

/// A list of numbers, of lists of them, or of tensors.
struct Nested {
  std::vector<Scalar> numbers;
  Shape shape;
  bool has_real = false, has_integer = false, has_beyond_int64 = false, has_negative = false;
  nb::object wide = {};  ///< an int beyond uint64, which stands as the nearest double
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
  if (PyLong_Check(from.value.ptr())) {
    const auto fill = convert<Fill>(from);
    if (fill.is_wide) into.wide = nb::borrow(from.value);
    into.numbers.push_back(fill.operand.argument().scalar());
  } else {
    into.numbers.push_back(convert<Scalar>(from));
  }
  const Scalar& number = into.numbers.back();
  into.has_real |= number.kind() == Scalar::Kind::real;
  into.has_integer |= number.kind() == Scalar::Kind::integer;
  into.has_beyond_int64 |= number.is_beyond_int64();
  into.has_negative |= number.to_double() < 0;
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

/// f(), whose Errors are those of the function that was called.
template <class F>
Tensor named(const From& from, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw_python(class_of(error.kind()), message_of(error, from.where));
  }
}

Tensor stacked(const From& from) {
  const Deeper deeper;
  if (!PyList_Check(from.value.ptr()) && !PyTuple_Check(from.value.ptr()))
    return convert<Tensor>(from);
  std::vector<Tensor> parts;
  for (const nb::handle element : nb::borrow(from.value))
    parts.push_back(stacked({from.where, from.name, element}));
  return named(from, [&] { return stack(parts); });
}

Tensor from_numbers(const From& from, std::optional<DType> dtype, Device device) {
  if (holds_tensors(from.value)) {
    const Tensor made = stacked(from);
    return (dtype ? made.to(*dtype) : made).to(device);
  }
  Nested nested;
  read_nested(from, 0, nested);
  // In numbers without a dtype it would be a silent loss of digits.
  if (nested.wide.is_valid() && !(dtype && is_floating(*dtype)))
    static_cast<void>(convert<Scalar>({from.where, from.name, nested.wide}));  // throws
  const DType own = nested.has_real || nested.numbers.empty() ? f32
                    : nested.has_beyond_int64                 ? u64
                    : nested.has_integer                      ? i64
                                                              : boolean;
  const DType wanted = dtype.value_or(own);
  if (nested.numbers.size() == 1)
    return reshape(named(from, [&] { return full({}, nested.numbers[0], wanted, device); }),
                   nested.shape);
  // No integer dtype holds numbers of both ends.
  const bool as_reals = nested.has_real || (nested.has_beyond_int64 && nested.has_negative);
  const Spec spec = {.dtype = as_reals                  ? f64
                              : nested.has_beyond_int64 ? u64
                                                        : i64,
                     .shape = nested.shape,
                     .is_weak = false,
                     .device = device};
  std::vector<uint64_t> words;
  words.reserve(nested.numbers.size());
  for (const Scalar& number : nested.numbers)
    words.push_back(as_reals                   ? std::bit_cast<uint64_t>(number.to_double())
                    : number.is_beyond_int64() ? number.bits()
                                               : static_cast<uint64_t>(number.to_integer()));
  for (const Scalar& number : nested.numbers) {  // throws for what the dtype does not hold
    if (is_integer(wanted) && number.kind() == Scalar::Kind::integer)
      named(from, [&] { return full({}, number, wanted, Device{}); });
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
  } else if (is_array(obj) || (PyObject_CheckBuffer(obj.ptr()) != 0 && !is_text(obj))) {
    made = from_array(from, never ? Copy::never : Copy::always);
  } else {
    if (never) throw_type(from, "an array, to read its memory without a copy (copy=False)");
    return from_numbers(from, dtype, device.value_or(default_device()));
  }
  if (dtype && *dtype != made.dtype()) {
    if (never) throw_type({"asarray", "dtype", dtype_given}, "the array's own, with copy=False");
    made = made.to(*dtype);
  }
  if (device && *device != made.device()) {
    if (never) throw_type({"asarray", "device", device_given}, "the tensor's own, with copy=False");
    made = made.to(*device);
  }
  return copy.is(Py_True) && is_tensor(obj) ? nitinol::copy(made) : made;
}

/// What a buffer of Python's is given out of.
struct Held {
  Tensor tensor;
  std::array<Py_ssize_t, max_rank> shape, strides;
};

}  // namespace

nb::object bytes_of(const Tensor& x, const char* what) {
  note_read(x, what);
  const Tensor host = row_major(on_host(x));
  const auto size = static_cast<std::size_t>(host.size()) * size_of(host.dtype());
  return nb::steal(PyBytes_FromStringAndSize(static_cast<const char*>(host.read_bytes()),
                                             static_cast<Py_ssize_t>(size)));
}

Tensor on_host(const Tensor& tensor) {
  return tensor.device().kind == Device::Kind::cuda ? tensor.to(Device{}) : tensor;
}

Tensor from_array(const From& from, Copy copy) {
  const Foreign memory = memory_of(from, copy);
  if (!memory.is_on_host) {
    throw_python(class_of(ErrorKind::device),
                 fmt::format("{}: {} lies in a device's memory; bring it to the host's first",
                             from.where, from.name));
  }
  Spec spec = {.dtype = memory.dtype, .shape = memory.shape, .is_weak = false, .device = {}};
  const std::size_t width = size_of(spec.dtype);
  const auto elements = static_cast<std::size_t>(element_count(spec.shape));
  const bool is_aligned = reinterpret_cast<uintptr_t>(memory.data) % width == 0;
  const std::optional<Strides> strides = element_strides(memory);
  if (copy == Copy::never) {
    if (memory.is_big_endian)
      throw_type(from, "little-endian elements, to read their memory without a copy");
    if (!is_aligned || !strides)
      throw_type(from, "memory aligned to its elements, to read it without a copy");
    return borrow_from(memory.owner, memory.data, spec, *strides);
  }
  const auto size = static_cast<int64_t>(elements);
  if (memory.is_big_endian) {
    spec.device = default_device();
    return from_bytes(packed(memory), spec);
  }
  if (elements == 0 || (strides && is_contiguous(spec.shape, *strides))) {
    spec.device = default_device();
    return computed(size, [&] { return from_bytes({memory.data, elements * width}, spec); });
  }
  if (!is_aligned || !strides) {
    spec.device = default_device();
    return from_bytes(packed(memory), spec);
  }
  const Tensor view = borrow_from(memory.owner, memory.data, spec, *strides);
  return computed(size, [&] { return nitinol::copy(view).to(default_device()); });
}

namespace {

Dims reversed(const Dims& dims) {
  Dims result;
  for (int i = dims.size(); i-- > 0;) result.push_back(dims[i]);
  return result;
}

/// The tensor, laid out as a reader of its buffer expects it that does not follow strides.
Tensor laid_out(const Tensor& tensor, int flags) {
  const auto asks = [flags](int what) { return (flags & what) == what; };
  const bool is_rows = is_contiguous(tensor.shape(), tensor.strides());
  const bool is_columns = is_contiguous(reversed(tensor.shape()), reversed(tensor.strides()));
  if (asks(PyBUF_ANY_CONTIGUOUS)) return is_rows || is_columns ? tensor : row_major(tensor);
  if (asks(PyBUF_F_CONTIGUOUS) && !is_columns) {
    Dims order;
    for (int i = tensor.rank(); i-- > 0;) order.push_back(i);
    return permute(row_major(permute(tensor, order)), order);
  }
  const bool wants_rows = !asks(PyBUF_STRIDES) || asks(PyBUF_C_CONTIGUOUS);
  return wants_rows ? row_major(tensor) : tensor;
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const Tensor given = tensor_in(self);
    const ElementType& type = type_of(given.dtype());
    if (type.format == nullptr) {
      PyErr_SetString(PyExc_BufferError, "Python's buffers have no bfloat16");
      return -1;
    }
    if ((flags & PyBUF_WRITABLE) != 0) {
      PyErr_SetString(PyExc_BufferError, "a Tensor's elements are never written");
      return -1;
    }
    note_read(given, "giving its memory to a buffer");
    const Tensor tensor = computed(given.size(), [&] { return laid_out(on_host(given), flags); });
    auto held = std::make_unique<Held>(Held{tensor, {}, {}});
    const auto width = static_cast<Py_ssize_t>(size_of(tensor.dtype()));
    for (int i = 0; i < tensor.rank(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      held->shape[at] = tensor.shape()[i];
      held->strides[at] = tensor.strides()[i] * width;
    }
    const bool has_shape = (flags & PyBUF_ND) != 0 && tensor.rank() > 0;
    const bool has_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES && has_shape;
    view->buf = const_cast<void*>(address_of(tensor));  // NOLINT: read only, as it says
    view->len = tensor.size() * width;
    view->readonly = 1;
    view->itemsize = width;
    // NOLINTNEXTLINE: never written
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(type.format) : nullptr;
    view->ndim = (flags & PyBUF_ND) != 0 ? tensor.rank() : 1;  // else they are just bytes
    view->shape = has_shape ? held->shape.data() : nullptr;
    view->strides = has_strides ? held->strides.data() : nullptr;
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
        nb::object made = to_python(asarray(obj, dtype, device, copy));
        // No copy of a tensor is that tensor, whose x[...] = y is seen by all who have it.
        return copy.is(Py_False) && is_tensor(obj) ? nb::borrow(obj) : made;
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
        const auto wanted = convert<std::optional<Device>>({"from_dlpack", "device", device});
        const From from = {"from_dlpack", "x", x};
        const bool is_ours = is_tensor(x) || is_variable(x);
        const Tensor made = is_ours
                                ? convert<Tensor>(from)
                                : from_array(from, copy.is(Py_False) ? Copy::never : Copy::always);
        if (wanted && *wanted != made.device()) {
          if (copy.is(Py_False))
            throw_python(PyExc_BufferError, "from_dlpack: copy=False, but the device is another");
          return to_python(made.to(*wanted));
        }
        return to_python(is_ours && copy.is(Py_True) ? nitinol::copy(made) : made);
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
  method("__dlpack__", dlpack_of, nb::kw_only(), nb::arg("stream") = nb::none(),
         nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
         nb::arg("copy") = nb::none(),
         nb::sig("def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | "
                 "None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) "
                 "-> typing.Any"),
         "The elements for another library: a copy, which it may write, unless copy=False.");
  method(
      "__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); },
      nb::sig("def __dlpack_device__(self) -> tuple[int, int]"));
}

}  // namespace nitinol::python
