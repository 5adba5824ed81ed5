// The two ways from host code to a tensor's elements: one waits and reads, one fills. Whatever else
// looks at memory is device code, or hands an address to it (tests/style_test.cpp).
#pragma once

#include "core/function_ref.h"
#include "core/tensor.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace nitinol {

/// The elements of a tensor where the host may read them, when all that makes them has been done:
/// in place where the memory is the host's, else a copy. Valid while this and the tensor live.
class HostElements {
 public:
  /// The tensor must be defined and have memory, or be a number.
  explicit HostElements(const TensorData& data);
  [[nodiscard]] const Spec& spec() const { return data_.spec; }
  /// In elements.
  [[nodiscard]] const Strides& strides() const { return data_.strides; }
  /// The first element: that of index 0 in each dimension.
  [[nodiscard]] const std::byte* first() const { return first_; }
  /// The element at these indices; one per dimension, in range.
  [[nodiscard]] const std::byte* at(const Dims& indices) const;
  /// Stores all elements, in row-major order and without gaps, at `to`.
  void copy_to(std::byte* to) const;
  /// All of them in row-major order, as Ts, which are as large: where they lie, or in `room`.
  template <class T>
  [[nodiscard]] std::span<const T> all(std::vector<T>& room) const {
    const auto count = static_cast<std::size_t>(element_count(data_.spec.shape));
    if (is_contiguous(data_.spec.shape, strides()))
      return {reinterpret_cast<const T*>(first_), count};
    room.resize(count);
    copy_to(reinterpret_cast<std::byte*>(room.data()));
    return room;
  }

 private:
  const TensorData& data_;
  std::unique_ptr<std::byte[]> copy_;
  const std::byte* first_;
};

/// Whether any is one. (By vectors, which a search that ends early is not.)
template <class T, class IsOne>
[[nodiscard]] bool has_any(std::span<const T> elements, IsOne is_one) {
  bool any = false;
  for (const T& element : elements) any |= is_one(element);
  return any;
}

/// The bits of the first element, zero-extended.
[[nodiscard]] uint64_t first_element(const Tensor& tensor);

/// A tensor of this spec, in fresh, contiguous memory, whose elements `write` stores in row-major
/// order. Throws what allocate_tensor() does. (backends/memory.cpp)
[[nodiscard]] Tensor filled_tensor(const Spec& spec, FunctionRef<void(std::span<std::byte>)> write);

}  // namespace nitinol
