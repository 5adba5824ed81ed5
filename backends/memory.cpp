// Memory of a device, by the device's name.
#include "core/memory.h"

#include "core/backend.h"
#include "core/error.h"
#include "core/host_access.h"
#include "core/memory_notes.h"
#include "core/tensor.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace nitinol {
namespace {

std::size_t bytes_of(const Spec& spec) {
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
  return bytes;
}

Tensor tensor_in(StorageHandle storage, const Spec& spec) {
  return make_tensor(spec, strides_of(spec.shape), 0, std::move(storage));
}

}  // namespace

Tensor allocate_tensor(const Spec& spec) {
  const std::size_t bytes = bytes_of(spec);
  return tensor_in(backend(spec.device).allocate(bytes), spec);
}

Tensor filled_tensor(const Spec& spec, FunctionRef<void(std::span<std::byte>)> write) {
  const std::size_t bytes = bytes_of(spec);
  Backend& device = backend(spec.device);
  StorageHandle storage = device.allocate_for_upload(bytes);
  if (storage->backend == nullptr) {
    write({static_cast<std::byte*>(storage->data), bytes});
  } else {
    device.upload_written(storage->data, bytes, write);
  }
  Tensor tensor = tensor_in(std::move(storage), spec);
  if (memory_notes::is_on()) [[unlikely]]
    memory_notes::note_copied(tensor);
  return tensor;
}

void Backend::upload_written(void* to, std::size_t bytes,
                             FunctionRef<void(std::span<std::byte>)> write) {
  const std::unique_ptr<std::byte[]> elements(new std::byte[bytes]);  // not initialised
  write({elements.get(), bytes});
  if (bytes > 0) upload(elements.get(), to, bytes);
}

MemoryStatistics memory_statistics(Device device) {
  return backend(device).memory();
}

void reset_peak_memory(Device device) {
  backend(device).release_cached_memory();
  backend(device).reset_peak_memory();
}

}  // namespace nitinol
