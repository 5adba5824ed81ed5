// Tensors from host values without any op, for tests of what lies below the ops.
#pragma once

#include "core/tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace nitinol::test {

/// A tensor whose memory is `elements`, in order.
template <class T>
Tensor host_tensor(DType dtype, const Shape& shape, const std::vector<T>& elements) {
  Spec spec;
  spec.dtype = dtype;
  spec.shape = shape;
  Tensor tensor = allocate_tensor(spec);
  auto* to = static_cast<std::byte*>(tensor.internals().address());
  for (const T element : elements) {
    std::memcpy(to, &element, sizeof(T));
    to += sizeof(T);
  }
  return tensor;
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
