// New tensors: from host data, and from formulas of the index.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"
#include "eager/ops/nested_vectors.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

// ---- from host data
//
// Inside a compiled function such data is compared at each recording; large data (64 KiB) makes the
// function run in segments: create it outside.
//
// Whatever is created lies on default_device() unless another is given.

/// A number, or a list of lists of ... numbers, as written in braces.
class Numbers {
 public:
  template <Arithmetic T>
  Numbers(T number) : number_(number), dtype_(dtype_of<T>()) {}  // NOLINT: numbers are Numbers
  Numbers(std::initializer_list<Numbers> list) : is_list_(true), list_(list) {}  // NOLINT
  [[nodiscard]] bool is_list() const { return is_list_; }
  [[nodiscard]] const std::vector<Numbers>& list() const { return list_; }
  [[nodiscard]] const Scalar& number() const { return number_; }
  [[nodiscard]] DType dtype() const { return dtype_; }

 private:
  bool is_list_ = false;
  Scalar number_;
  DType dtype_ = f32;
  std::vector<Numbers> list_;
};

/// A tensor of numbers: `tensor(1.5f)` is 0-d, `tensor({{1, 2}, {3, 4}})` is 2 by 2. The dtype is
/// the promotion of the numbers' C++ types unless another is given, so that plain literals give
/// int32 and float64.
/// Throws Error(shape) if lists of one level differ in length, and Error(value) for an integer that
/// an integer dtype does not hold.
[[nodiscard]] Tensor tensor(const Numbers& numbers, std::optional<DType> dtype = {},
                            Device device = default_device());

/// A copy of `bytes`, which hold the row-major elements of a tensor of this spec, on its device.
[[nodiscard]] Tensor from_bytes(std::span<const std::byte> bytes, const Spec& spec);
/// The numbers of a vector, array or span, 1-d. The dtype is that of their C++ type unless another
/// is given: reshape() and cast() make the rest.
template <Arithmetic T, std::size_t n>
[[nodiscard]] Tensor tensor(std::span<T, n> values, std::optional<DType> dtype = {}) {
  const DType own = dtype_of<std::remove_cv_t<T>>();
  const Tensor made = from_bytes(
      std::as_bytes(values),
      {.dtype = own, .shape = {values.size()}, .is_weak = false, .device = default_device()});
  return dtype ? made.to(*dtype) : made;
}
template <Arithmetic T>
[[nodiscard]] Tensor tensor(const std::vector<T>& values, std::optional<DType> dtype = {}) {
  if constexpr (std::same_as<T, bool>) {  // which are bits
    const auto bytes = std::make_unique<bool[]>(values.size());
    std::copy(values.begin(), values.end(), bytes.get());
    return tensor(std::span<const bool>(bytes.get(), values.size()), dtype);
  } else {
    return tensor(std::span<const T>(values), dtype);
  }
}
template <Arithmetic T, std::size_t n>
[[nodiscard]] Tensor tensor(const std::array<T, n>& values, std::optional<DType> dtype = {}) {
  return tensor(std::span<const T>(values), dtype);
}

/// The numbers of vectors of vectors, of any depth: each level is an axis. Throws Error(shape) if
/// vectors of one level differ in length.
template <class T>
requires Arithmetic<typename VectorsOf<T>::Number>
[[nodiscard]] Tensor tensor(const std::vector<std::vector<T>>& lists,
                            std::optional<DType> dtype = {}) {
  const FlatVectors flat(lists);
  return flat.shaped(tensor(flat.numbers, dtype));
}
/// Every element is `value`; the dtype, unless given, is bool, int64 or float32 by the number's
/// kind. Throws Error(value) if that is an integer dtype and does not hold an integer `value`.
[[nodiscard]] Tensor full(const Shape& shape, const Argument& value,
                          std::optional<DType> dtype = {}, Device device = default_device());

/// The number, 0-d and no longer weak: bool, int64 or float64 by its kind unless another dtype is
/// given. Inside a compiled function it stays the argument that it is.
template <std::same_as<Scalar> S>
[[nodiscard]] Tensor tensor(const S& number, std::optional<DType> dtype = {}) {
  return full({}, number, dtype.value_or(number.dtype()));
}

/// A copy of `values`, in row-major order. T: a dtype's C++ type.
/// Throws Error(shape) unless there are as many values as the shape has elements.
template <class T>
[[nodiscard, gnu::visibility("default")]] Tensor from_span(std::span<const T> values,
                                                           const Shape& shape);

/// A tensor that reads the caller's memory, row-major, without copying. `release` is called once,
/// by any thread, when no tensor needs the memory any more; until then it must not change. While a
/// compiled function records, the elements are copied: what it keeps needs no memory of the caller.
template <class T>
[[nodiscard, gnu::visibility("default")]] Tensor borrow(const T* data, const Shape& shape,
                                                        std::function<void()> release);

/// The same for memory described at run time. Strides are in elements. The memory is the host's,
/// and so is the device.
[[nodiscard]] Tensor borrow_bytes(const void* data, const Spec& spec, const Strides& strides,
                                  std::function<void()> release);

// ---- filled

/// Zeros; float32 unless another dtype is given.
[[nodiscard]] Tensor zeros(const Shape& shape, DType dtype = f32, Device device = default_device());
/// Ones; float32 unless another dtype is given.
[[nodiscard]] Tensor ones(const Shape& shape, DType dtype = f32, Device device = default_device());
/// A tensor whose elements do not matter: zeros.
[[nodiscard]] Tensor empty(const Shape& shape, DType dtype = f32, Device device = default_device());
/// Of the shape, dtype and device of `like`, elements that do not matter: zeros.
[[nodiscard]] Tensor empty_like(const Tensor& like);
/// Shape, dtype and device of `like`.
[[nodiscard]] Tensor full_like(const Tensor& like, const Argument& value);
[[nodiscard]] Tensor zeros_like(const Tensor& like);
[[nodiscard]] Tensor ones_like(const Tensor& like);

// ---- formulas of the index

/// 0, 1, ... below `stop`.
[[nodiscard]] Tensor arange(const Scalar& stop, std::optional<DType> dtype = {},
                            Device device = default_device());
/// start, start + step, ... before `stop`; computed in int64, exactly, if all three are integers,
/// else in float64. The dtype, unless given, is int64 or float32. Throws Error(value) if step is 0,
/// the length is not finite, or an integer dtype does not hold all integers of the range.
[[nodiscard]] Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step = 1,
                            std::optional<DType> dtype = {}, Device device = default_device());
/// `count` evenly spaced numbers from start to stop, both included; computed in float64.
/// Throws Error(dtype) unless dtype is floating.
[[nodiscard]] Tensor linspace(double start, double stop, Integer count, DType dtype = f32,
                              Device device = default_device());
/// Ones where column - row == diagonal, else zeros. `columns` defaults to `rows`.
[[nodiscard]] Tensor eye(Integer rows, std::optional<Integer> columns = {}, Integer diagonal = 0,
                         DType dtype = f32, Device device = default_device());

[[nodiscard]] std::span<const Op> create_ops();

}  // namespace nitinol

#pragma GCC visibility pop
