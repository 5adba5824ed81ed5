// Memory of a device, by the device's name.
#include "core/memory.h"

#include "core/backend.h"
#include "core/error.h"
#include "core/tensor.h"

#include <fmt/format.h>

#include <cstdint>

namespace nitinol {

Tensor allocate_tensor(const Spec& spec) {
  std::size_t bytes = size_of(spec.dtype);
  for (const int64_t size : spec.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes) ||
        bytes > PTRDIFF_MAX) {
      throw Error(ErrorKind::value, {.where = "allocate",
                                     .what = fmt::format("a tensor {}", describe(spec)),
                                     .expected = "a size that fits in memory",
                                     .got = "more bytes than can be addressed",
                                     .fix = "Check the shape."});
    }
  }
  return make_tensor(spec, strides_of(spec.shape), 0, backend(spec.device).allocate(bytes));
}

MemoryStatistics memory_statistics(Device device) {
  return backend(device).memory();
}

void reset_peak_memory(Device device) {
  backend(device).release_cached_memory();
  backend(device).reset_peak_memory();
}

}  // namespace nitinol
