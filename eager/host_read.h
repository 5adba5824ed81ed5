// Looking at a tensor's elements from host code: the one way to its memory outside of ops.
#pragma once

#include "core/error.h"
#include "core/host_access.h"
#include "core/interpreter.h"
#include "core/tensor.h"

#include <source_location>
#include <utility>

namespace nitinol::eager {

/// The tensor's elements, after the thread's interpreter has been asked. Throws Error(value) if the
/// tensor is undefined.
[[nodiscard]] inline HostElements host_read(const Tensor& tensor, const ReadSite& site) {
  const TensorData& data = tensor.internals();
  current().read(tensor, site);
  return HostElements(data);
}

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
