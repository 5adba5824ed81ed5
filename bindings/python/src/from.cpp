#include "bindings/python/src/from.h"

#include "bindings/python/src/array.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/lengths.h"

#include <fmt/format.h>

#include <limits>

namespace nitinol::python {
namespace {

/// The object as text, cut.
std::string shown(nb::handle value) {
  // A Tensor's text would look at its elements, which ends a recording.
  if (is_tensor(value)) return ", " + describe(tensor_in(value));
  if (is_variable(value)) return "";
  const nb::object text = nb::steal(PyObject_Repr(value.ptr()));
  if (!text.is_valid()) {
    PyErr_Clear();
    return "";
  }
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), nullptr);
  if (bytes == nullptr) {
    PyErr_Clear();
    return "";
  }
  std::string all = bytes;
  if (all.size() > 60) all = all.substr(0, 57) + "...";
  return ", " + all;
}

[[noreturn]] void throw_unexpected(PyObject* exception, const From& from,
                                   std::string_view expected) {
  const std::string given =
      from.value.is_none() ? "None" : with_article(class_name(from.value)) + shown(from.value);
  const std::string text =
      fmt::format("{}: {} is {}; expected {}", from.where, from.name, given, expected);
  PyErr_SetString(exception, text.c_str());
  throw nb::python_error();
}

bool is_integer_number(const Tensor& x) {
  return x.rank() == 0 && is_integer(x.dtype());
}

int64_t int64_in(PyObject* integer, const From& from) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  if (overflow != 0)
    throw_unexpected(PyExc_OverflowError, from, "an integer from -2**63 to 2**63 - 1");
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

int64_t to_int64(const From& from) {
  if (PyLong_CheckExact(from.value.ptr())) return int64_in(from.value.ptr(), from);
  // True is an int to Python; here it would be a slip, as `sum(x, True)`.
  if (PyBool_Check(from.value.ptr()) || !PyIndex_Check(from.value.ptr()))
    throw_type(from, "an integer");
  if (is_tensor(from.value) && !is_integer_number(tensor_in(from.value)))
    throw_type(from, "an integer, as 0-d tensors of integers are");
  const nb::object index = nb::steal(PyNumber_Index(from.value.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  return int64_in(index.ptr(), from);
}

Scalar number_of(nb::handle value, const From& from) {
  PyObject* object = value.ptr();
  if (PyBool_Check(object)) return Scalar(object == Py_True);
  if (PyFloat_Check(object)) return Scalar(PyFloat_AsDouble(object));
  if (!PyLong_CheckExact(object)) return Scalar(to_int64(from));
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred() == nullptr) return Scalar(uint64_t{large});
    PyErr_Clear();
  }
  if (overflow == 0) return Scalar(int64_t{number});
  throw_unexpected(PyExc_OverflowError, from,
                   "an integer from -2**63 to 2**64 - 1, which integer dtypes hold.\nGive a float; "
                   "asarray() and full() take dtype=nitinol.float64.");
}

bool is_number(nb::handle value) {
  return PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr());  // bool is an int
}

Tensor value_of(const Variable& variable) {
  if (is_held()) return variable.get();  // of the call's own: nothing is waited for
  const Unlocked release;                // a Plan may be overwriting the cell
  return variable.get();
}

}  // namespace

Types& types() {
  static Types all;
  return all;
}

std::string class_name(nb::handle value) {
  return nb::cast<std::string>(nb::str(nb::handle(type_of(value)).attr("__name__")));
}

void throw_type(const From& from, const char* expected) {
  const bool is_text = PyUnicode_Check(from.value.ptr());
  if (is_text && std::string_view(from.name) == "padding" &&
      nb::cast<std::string>(from.value) == "same")  // PyTorch's and Keras' word
    throw_unexpected(PyExc_TypeError, from, "numbers; \"same\" is is_same=True here");
  throw_unexpected(PyExc_TypeError, from, expected);
}

void check_self(nb::handle self, nb::handle type) {
  if (!self.type().is(type))
    throw_type({"a method", "the object", self},
               with_article(nb::cast<std::string>(type.attr("__name__"))).c_str());
}

bool is_text(nb::handle value) {
  return PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
}

bool is_array(nb::handle value) {
  if (is_number(value) || is_text(value)) return false;
  const nb::handle type(type_of(value));
  return nb::hasattr(type, "__dlpack__") || nb::hasattr(type, "__array_interface__") ||
         nb::hasattr(type, "__array__");
}

bool is_operand(nb::handle value) {
  return is_tensor(value) || is_number(value) || is_variable(value) || is_scalar(value) ||
         is_array(value);
}

template <>
Tensor convert<Tensor>(const From& from) {
  if (is_tensor(from.value)) return tensor_in(from.value);
  if (is_variable(from.value)) return value_of(variable_in(from.value));
  if (is_scalar(from.value)) return scalar_in(from.value);
  if (is_number(from.value)) return number_of(from.value, from);
  if (is_array(from.value)) return from_array(from, Copy::always);
  throw_type(from, "a Tensor, a Variable, a number or an array");
}

template <>
Operand convert<Operand>(const From& from) {
  if (is_tensor(from.value)) return Operand(tensor_in(from.value));
  if (is_number(from.value)) return Operand(number_of(from.value, from));
  if (is_variable(from.value)) return Operand(value_of(variable_in(from.value)));
  if (is_scalar(from.value)) return Operand(scalar_in(from.value));
  if (is_array(from.value)) return Operand(from_array(from, Copy::always));
  throw_type(from, "a Tensor, a Variable, a number or an array");
}

const Operand& Fill::of(const char* where, std::optional<DType> dtype) const {
  if (is_wide && !(dtype && is_floating(*dtype))) {
    throw Error(ErrorKind::value, {.where = where,
                                   .what = "an int beyond int64 and uint64",
                                   .expected = "a floating dtype to hold it",
                                   .got = dtype ? std::string(name_of(*dtype)) : "none",
                                   .fix = "Say dtype=nitinol.float64, or give a float."});
  }
  return operand;
}

template <>
Fill convert<Fill>(const From& from) {
  int beyond = 0;
  if (PyLong_Check(from.value.ptr())) PyLong_AsLongLongAndOverflow(from.value.ptr(), &beyond);
  if (beyond > 0 && PyLong_AsUnsignedLongLong(from.value.ptr()) != ~0ULL) beyond = 0;
  if (beyond > 0 && PyErr_Occurred() == nullptr) beyond = 0;  // the largest uint64
  PyErr_Clear();
  if (beyond == 0) return {convert<Operand>(from)};
  const double nearest = PyLong_AsDouble(from.value.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw_unexpected(PyExc_OverflowError, from, "a number that float64 holds");
  }
  return {Operand(Scalar(nearest)), true};
}

template <>
Variable convert<Variable>(const From& from) {
  if (!is_variable(from.value)) throw_type(from, "a Variable");
  return variable_in(from.value);
}

template <>
Scalar convert<Scalar>(const From& from) {
  if (is_scalar(from.value)) return scalar_in(from.value);
  if (is_number(from.value)) return number_of(from.value, from);
  if (PyIndex_Check(from.value.ptr())) return Scalar(to_int64(from));
  throw_type(from, "a number");
}

template <>
int64_t convert<int64_t>(const From& from) {
  return to_int64(from);
}

template <>
Integer convert<Integer>(const From& from) {
  return to_int64(from);
}

template <>
uint64_t convert<uint64_t>(const From& from) {
  const int64_t number = to_int64(from);
  if (number < 0) throw_type(from, "an integer that is not negative");
  return static_cast<uint64_t>(number);
}

template <>
double convert<double>(const From& from) {
  if (is_scalar(from.value)) return scalar_in(from.value).to_double();
  const double number = PyFloat_AsDouble(from.value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw_type(from, "a number");
  }
  return number;
}

template <>
bool convert<bool>(const From& from) {
  if (!PyBool_Check(from.value.ptr())) throw_type(from, "True or False");
  return from.value.is(Py_True);
}

template <>
std::string convert<std::string>(const From& from) {
  if (!PyUnicode_Check(from.value.ptr())) throw_type(from, "a str");
  return nb::cast<std::string>(nb::str(from.value));
}

template <>
std::filesystem::path convert<std::filesystem::path>(const From& from) {
  if (!is_text(from.value) && !nb::hasattr(from.value, "__fspath__"))
    throw_type(from, "a path: a str, bytes or an os.PathLike");
  const nb::object path = nb::steal(PyOS_FSPath(from.value.ptr()));
  if (!path.is_valid()) throw nb::python_error();
  const nb::object bytes = nb::steal(
      PyUnicode_Check(path.ptr()) ? PyUnicode_EncodeFSDefault(path.ptr()) : path.inc_ref().ptr());
  if (!bytes.is_valid()) throw nb::python_error();
  return {std::string(PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(nb::len(bytes)))};
}

template <>
Dims convert<Dims>(const From& from) {
  constexpr const char* expected = "an integer, or a tuple of integers";
  if (PyIndex_Check(from.value.ptr()) && !PyBool_Check(from.value.ptr()) && !is_tensor(from.value))
    return {Integer(to_int64(from))};
  Dims dims;
  for (const nb::object& element : parts::elements(from, expected))
    dims.push_back(to_int64({from.where, from.name, element}));
  return dims;
}

template <>
Lengths convert<Lengths>(const From& from) {
  return {convert<Dims>(from), PySequence_Check(from.value.ptr()) != 0};
}

template <>
Axes convert<Axes>(const From& from) {
  if (from.value.is_none()) return {};
  return convert<Dims>(
      from);  // axis=(), which means none, is the caller's: see Arguments::is_empty
}

template <>
Pair convert<Pair>(const From& from) {
  const Dims dims = convert<Dims>(from);
  if (dims.size() == 1) return {dims[0]};
  if (dims.size() != 2) throw_type(from, "one integer, or two: for rows and columns");
  return {dims[0], dims[1]};
}

template <>
KeepDims convert<KeepDims>(const From& from) {
  return convert<bool>(from) ? KeepDims::yes : KeepDims::no;
}

template <>
Generator convert<Generator>(const From& from) {
  if (!from.value.type().is(types().generator)) throw_type(from, "a random.Generator");
  return nb::cast<Generator>(from.value);
}

template <>
dist::Group convert<dist::Group>(const From& from) {
  if (!from.value.type().is(types().group)) throw_type(from, "a dist.Group");
  return nb::cast<dist::Group>(from.value);
}

template <>
Device convert<Device>(const From& from) {
  if (from.value.type().is(types().device)) return nb::cast<Device>(from.value);
  if (PyUnicode_Check(from.value.ptr())) {
    if (const auto named = device_named(convert<std::string>(from))) return *named;
  }
  throw_type(from, "a Device or its name: 'cpu', 'cuda:0'");
}

template <>
DType convert<DType>(const From& from) {
  constexpr const char* expected = "a dtype: nitinol.float32, 'float32', numpy.float32, float";
  PyObject* given = from.value.ptr();
  if (from.value.type().is(types().dtype)) return nb::cast<DType>(from.value);
  if (given == reinterpret_cast<PyObject*>(&PyFloat_Type)) return f32;
  if (given == reinterpret_cast<PyObject*>(&PyLong_Type)) return i64;
  if (given == reinterpret_cast<PyObject*>(&PyBool_Type)) return boolean;
  nb::object name = nb::borrow(from.value);
  if (!PyUnicode_Check(given)) {
    // numpy.dtype has `name`; numpy.float32 is a class that its instances' dtype is named for.
    if (PyType_Check(given) && nb::hasattr(name, "__name__"))
      name = name.attr("__name__");
    else if (nb::hasattr(name, "name"))
      name = name.attr("name");
    else
      throw_type(from, expected);
    if (!PyUnicode_Check(name.ptr())) throw_type(from, expected);
  }
  std::string text = nb::cast<std::string>(nb::str(name));
  if (text == "bool_") text = "bool";
  if (const auto dtype = dtype_named(text)) return *dtype;
  throw_type(from, expected);
}

template <>
Range convert<Range>(const From& from) {
  Range range;
  if (PySlice_Check(from.value.ptr())) {
    const auto part = [&](nb::handle value, Integer& into) {
      if (!value.is_none()) into = to_int64({from.where, from.name, value});
    };
#ifdef Py_LIMITED_API
    const auto slice = from.value;
    part(slice.attr("start"), range.start), part(slice.attr("stop"), range.stop);
    part(slice.attr("step"), range.step);
#else  // attributes by name take longest of all that x[1:3] does
    const auto* const slice = reinterpret_cast<const PySliceObject*>(from.value.ptr());
    part(slice->start, range.start), part(slice->stop, range.stop), part(slice->step, range.step);
#endif
    return range;
  }
  const Dims dims = convert<Dims>(from);
  if (dims.size() < 2 || dims.size() > 3) throw_type(from, "a slice, or (start, stop)");
  return {dims[0], dims[1], dims.size() == 3 ? Integer(dims[2]) : Integer(1)};
}

template <>
std::vector<Padding> convert<std::vector<Padding>>(const From& from) {
  std::vector<Padding> all;
  for (const nb::object& element : parts::elements(from, "a pair (before, after) for each axis")) {
    const Dims dims = convert<Dims>({from.where, from.name, element});
    if (dims.size() > 2) throw_type(from, "a pair (before, after) for each axis");
    all.push_back({dims[0], dims[dims.size() - 1]});
  }
  return all;
}

template <>
std::vector<Variable> convert<std::vector<Variable>>(const From& from) {
  if (nb::hasattr(from.value, "parameters") && !is_variable(from.value)) {
    const nb::object parameters = from.value.attr("parameters")();
    return parts::Converter<std::vector<Variable>>::from({from.where, from.name, parameters});
  }
  return parts::Converter<std::vector<Variable>>::from(from);
}

std::vector<nb::object> parts::elements(const From& from, const char* expected) {
  // A str is a sequence of strs, a Tensor one of Tensors: neither is meant.
  if (PyUnicode_Check(from.value.ptr()) || PyBytes_Check(from.value.ptr()) ||
      PySequence_Check(from.value.ptr()) == 0)
    throw_type(from, expected);
  std::vector<nb::object> all;
  const nb::object iterator = nb::steal(PyObject_GetIter(from.value.ptr()));
  if (!iterator.is_valid()) throw nb::python_error();
  while (PyObject* next = PyIter_Next(iterator.ptr())) all.push_back(nb::steal(next));
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return all;
}

nb::object to_python(Tensor tensor) {
  if (!tensor.is_defined()) return nb::none();
  const bool is_tracked = may_hold_objects(tensor);
  nb::object made = holding(types().tensor, std::move(tensor));
  if (!is_tracked) PyObject_GC_UnTrack(made.ptr());
  return made;
}

nb::object to_python(Variable variable) {
  if (!variable.is_defined()) return nb::none();
  return holding(types().variable, std::move(variable));
}

nb::object to_python(const Dims& dims) {
  nb::object tuple = nb::steal(PyTuple_New(dims.size()));
  for (int i = 0; i < dims.size(); ++i)
    PyTuple_SetItem(tuple.ptr(), i, PyLong_FromLongLong(dims[i]));
  return tuple;
}

nb::object to_python(std::vector<Tensor> tensors) {
  nb::list list;
  for (Tensor& tensor : tensors) list.append(to_python(std::move(tensor)));
  return list;
}

}  // namespace nitinol::python
