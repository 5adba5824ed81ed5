// What Python gives, as the types that C++ functions take.
//
// A bound function takes nb::handle for each argument and asks convert<T>({"sum", "axis", axis}):
// so that one place says what stands for what, and errors name the function and the argument.
#pragma once

#include "bindings/python/src/lock.h"
#include "nitinol.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::python {

namespace nb = nanobind;

/// The classes of Python, once they are bound.
struct Types {
  nb::handle tensor, variable, scalar, dtype, device, generator, group, method;
};
[[nodiscard]] Types& types();

[[nodiscard]] inline bool is_tensor(nb::handle value) {
  return value.type().is(types().tensor);
}
[[nodiscard]] inline bool is_variable(nb::handle value) {
  return value.type().is(types().variable);
}
[[nodiscard]] inline bool is_scalar(nb::handle value) {
  return value.type().is(types().scalar);
}
/// The C++ object in one of those; the caller has asked. Of a Tensor a handle of its own: another
/// thread may give the object another value as soon as Python's lock is given away.
[[nodiscard]] inline Tensor tensor_in(nb::handle value) {
  return *nb::inst_ptr<Tensor>(value);
}
/// Whether the garbage collector may find something behind a tensor (tape.h, borrowed.h).
[[nodiscard]] inline bool may_hold_objects(const Tensor& tensor) {
  const StorageHandle& storage = tensor.internals().storage;
  return tensor.tracks_gradient() || (storage && storage->is_borrowed);
}
/// Gives a Tensor object another value; others keep theirs.
inline void rebind(nb::handle object, Tensor value) {
  const bool is_tracked = may_hold_objects(value);
  std::swap(*nb::inst_ptr<Tensor>(object), value);  // whole, before the old one goes
  if (is_tracked && PyObject_GC_IsTracked(object.ptr()) == 0) PyObject_GC_Track(object.ptr());
}
[[nodiscard]] inline Variable& variable_in(nb::handle value) {
  return *nb::inst_ptr<Variable>(value);
}
[[nodiscard]] inline Scalar& scalar_in(nb::handle value) {
  return *nb::inst_ptr<Scalar>(value);
}

/// An argument: what it was given for, and what was given.
struct From {
  const char* where;  ///< the function, as the user called it
  const char* name;   ///< of the parameter
  nb::handle value;
};

[[nodiscard]] inline PyObject* type_of(nb::handle value) {
  return reinterpret_cast<PyObject*>(Py_TYPE(value.ptr()));
}
/// The name of a value's class.
[[nodiscard]] std::string class_name(nb::handle value);

/// Throws TypeError unless `self`, the object of a method, is of `type`: Tensor.numpy(3).
void check_self(nb::handle self, nb::handle type);

/// Throws Python's TypeError: "sum: axis is a str, 'x'; expected an integer".
[[noreturn]] void throw_type(const From& from, const char* expected);

/// What binary functions take: a Tensor, or a number that takes the other operand's dtype.
class Operand {
 public:
  explicit Operand(Tensor tensor) : tensor_(std::move(tensor)), is_number_(false) {}
  explicit Operand(Scalar number) : number_(std::move(number)) {}
  [[nodiscard]] Argument argument() const {
    return is_number_ ? Argument(number_) : Argument(tensor_);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): given to functions that take one
  operator Argument() const { return argument(); }
  [[nodiscard]] int64_t size() const { return is_number_ ? 1 : tensor_.size(); }

 private:
  Tensor tensor_;
  Scalar number_;
  bool is_number_ = true;
};

/// What fills a tensor: an operand, or an int beyond uint64, which floating dtypes hold.
struct Fill {
  Operand operand;
  bool is_wide = false;  ///< the operand is the nearest double
  /// The operand. Throws Error(value) for a wide int where `dtype` is not floating.
  [[nodiscard]] const Operand& of(const char* where, std::optional<DType> dtype) const;
  [[nodiscard]] int64_t size() const { return operand.size(); }
};

/// Whether `value` may be an operand: a Tensor, Variable, Scalar, a number, an array.
[[nodiscard]] bool is_operand(nb::handle value);
/// A str or bytes: NumPy's, too, which have the protocols of arrays.
[[nodiscard]] bool is_text(nb::handle value);
/// Whether `value` is an array of another library: one with __dlpack__, or NumPy's.
[[nodiscard]] bool is_array(nb::handle value);

/// The value as a T. Throws TypeError for what does not stand for one, OverflowError for integers
/// beyond int64.
template <class T>
[[nodiscard]] T convert(const From& from);

/// A Tensor, Variable, Scalar, number or array (which is copied).
template <>
Tensor convert<Tensor>(const From& from);
template <>
Operand convert<Operand>(const From& from);
template <>
Fill convert<Fill>(const From& from);
template <>
Variable convert<Variable>(const From& from);
/// A number, bool or Scalar.
template <>
Scalar convert<Scalar>(const From& from);
template <>
Integer convert<Integer>(const From& from);
template <>
int64_t convert<int64_t>(const From& from);
template <>
uint64_t convert<uint64_t>(const From& from);
template <>
double convert<double>(const From& from);
template <>
bool convert<bool>(const From& from);
template <>
std::string convert<std::string>(const From& from);
template <>
std::filesystem::path convert<std::filesystem::path>(const From& from);
/// An integer, or a sequence of them; of Axes None means all.
template <>
Dims convert<Dims>(const From& from);
template <>
Axes convert<Axes>(const From& from);
template <>
Pair convert<Pair>(const From& from);
template <>
KeepDims convert<KeepDims>(const From& from);
/// nitinol.float32, "float32", "f32", numpy.float32, float.
template <>
DType convert<DType>(const From& from);
template <>  // a Device or "cuda:0"
Device convert<Device>(const From& from);
template <>
Generator convert<Generator>(const From& from);
template <>
dist::Group convert<dist::Group>(const From& from);
template <>  // a slice, or (start, stop[, step])
Range convert<Range>(const From& from);
/// An integer for all axes, (before, after), or one of either for each: as numpy.pad's pad_width.
template <>
std::vector<Padding> convert<std::vector<Padding>>(const From& from);
template <>  // or a module, for its parameters
std::vector<Variable> convert<std::vector<Variable>>(const From& from);

namespace parts {
[[nodiscard]] std::vector<nb::object> elements(const From& from, const char* expected);

template <class T>
struct Converter;  // incomplete: a type that nothing of Python stands for does not compile
template <class T>
struct Converter<std::optional<T>> {
  static std::optional<T> from(const From& from) {
    if (from.value.is_none()) return {};
    return convert<T>(from);
  }
};
template <class T>
struct Converter<std::vector<T>> {
  static std::vector<T> from(const From& from) {
    std::vector<T> all;
    for (const nb::object& element : elements(from, "a list or another sequence"))
      all.push_back(convert<T>({from.where, from.name, element}));
    return all;
  }
};
}  // namespace parts

template <class T>
T convert(const From& from) {
  return parts::Converter<T>::from(from);
}

/// Elements from which an operation is long enough to let other threads of Python run meanwhile:
/// giving the lock away and taking it back costs about 0.1 us.
inline constexpr int64_t long_work = 4096;

/// f(), with Python's lock given away if the operands have that many elements together.
template <class F>
auto computed(int64_t elements, F&& f) {
  if (elements < long_work) return std::forward<F>(f)();
  const Unlocked release;
  return std::forward<F>(f)();
}

[[nodiscard]] inline int64_t work_of(const Tensor& tensor) {
  return tensor.is_defined() ? tensor.size() : 0;
}
[[nodiscard]] inline int64_t work_of(const Operand& operand) {
  return operand.size();
}
[[nodiscard]] inline int64_t work_of(const Fill& fill) {
  return fill.size();
}
[[nodiscard]] inline int64_t work_of(const std::vector<Tensor>& tensors) {
  int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += work_of(tensor);
  return sum;
}
template <class T>
[[nodiscard]] int64_t work_of(const T&) {
  return 0;
}
template <class T>
[[nodiscard]] int64_t work_of(const std::optional<T>& value) {
  return value ? work_of(*value) : 0;
}

/// An object of a bound class that holds `value`.
template <class T>
[[nodiscard]] nb::object holding(nb::handle type, T value) {
  nb::object made = nb::inst_alloc(type);
  new (nb::inst_ptr<T>(made)) T(std::move(value));
  nb::inst_mark_ready(made);
  return made;
}

/// A Tensor of Python; None for an undefined one.
[[nodiscard]] nb::object to_python(Tensor tensor);
[[nodiscard]] nb::object to_python(Variable variable);
[[nodiscard]] nb::object to_python(const Dims& dims);             ///< a tuple
[[nodiscard]] nb::object to_python(std::vector<Tensor> tensors);  ///< a list

}  // namespace nitinol::python
