// Tensors from host values without any op, for tests of what lies below the ops.
#pragma once

#include "core/host_access.h"
#include "core/tensor.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace nitinol::test {

/// A tensor whose memory is `elements`, in order.
template <class T>
Tensor host_tensor(DType dtype, const Shape& shape, const std::vector<T>& elements) {
  const Spec spec = {.dtype = dtype, .shape = shape, .is_weak = false, .device = default_device()};
  return filled_tensor(spec, [&](std::span<std::byte> memory) {
    std::byte* to = memory.data();
    for (const T element : elements) {
      std::memcpy(to, &element, sizeof(T));
      to += sizeof(T);
    }
  });
}

template <class T>
Tensor host_tensor(const Shape& shape, const std::vector<T>& elements) {
  return host_tensor(dtype_of<T>(), shape, elements);
}

/// A view with the axes in reverse order.
inline Tensor reversed(const Tensor& tensor) {
  Spec spec = tensor.spec();
  Strides strides = tensor.internals().strides;
  std::ranges::reverse(spec.shape);
  std::ranges::reverse(strides);
  return make_tensor(spec, strides, tensor.internals().offset, tensor.internals().storage);
}

}  // namespace nitinol::test
