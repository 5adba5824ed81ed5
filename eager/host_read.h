// Looking at a tensor's elements from host code: the one way to its memory outside of ops.
#pragma once

#include "core/error.h"
#include "core/interpreter.h"
#include "core/tensor.h"

#include <cstddef>
#include <source_location>
#include <utility>

namespace nitinol::eager {

/// The tensor's internals, after the thread's interpreter has been asked: from then on its elements
/// are computed and may be read. Throws Error(value) if the tensor is undefined.
const TensorData& host_read(const Tensor& tensor, const ReadSite& site);

/// Address of the element at these indices; one per dimension, in range.
[[nodiscard]] const std::byte* element_at(const TensorData& data, const Dims& indices);

/// Stores all elements, in row-major order and without gaps, at `to`.
void copy_elements(const TensorData& from, std::byte* to);

/// f(), whose Errors get the place of the user's call.
template <class F>
decltype(auto) located(std::source_location place, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const Error& error) {
    throw error.with_location(place);
  }
}

}  // namespace nitinol::eager
