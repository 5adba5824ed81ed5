#include "core/autocast.h"

#include <utility>

namespace nitinol {

constinit thread_local DType thread_autocast::dtype = f32;

DType set_autocast_dtype(DType dtype) {
  return std::exchange(thread_autocast::dtype, dtype);
}

AutocastScope::AutocastScope(DType dtype) : before_(autocast_dtype()) {
  set_autocast_dtype(dtype);
}

}  // namespace nitinol
