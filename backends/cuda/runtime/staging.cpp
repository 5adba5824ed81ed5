#include "backends/cuda/runtime/staging.h"

#include "backends/cuda/runtime/gpu.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace nitinol::cuda {

void Staging::prepare(Buffer& buffer) {
  if (buffer.memory == nullptr) {
    void* memory = nullptr;
    gpu_.check(driver().cuMemHostAlloc(&memory, buffer_bytes, Driver::portable_and_mapped),
               "pinning memory");
    buffer.memory = static_cast<std::byte*>(memory);
  }
  if (buffer.copied == nullptr)
    gpu_.check(driver().cuEventCreate(&buffer.copied, Driver::no_timing), "making an event");
}

void Staging::wait(Buffer& buffer) {
  if (!buffer.is_waiting) return;
  gpu_.check_wait(driver().cuEventSynchronize(buffer.copied), "waiting for a copy");
  buffer.is_waiting = false;
}

void Staging::mark(Buffer& buffer, Driver::Stream stream) {
  gpu_.check(driver().cuEventRecord(buffer.copied, stream), "recording an event");
  buffer.is_waiting = true;
}

void Staging::upload(const void* from, void* to, std::size_t bytes, Driver::Stream stream) {
  const bool is_in_order = stream == gpu_.stream();
  Uploads& uploads = is_in_order ? in_order_ : beside_;
  const std::lock_guard lock(uploads.mutex);
  Driver::Event last = nullptr;
  for (std::size_t begin = 0; begin < bytes; begin += buffer_bytes) {
    const std::size_t piece = std::min(bytes - begin, buffer_bytes);
    Buffer& buffer = uploads.ring[uploads.next++ % buffer_count];
    prepare(buffer);
    wait(buffer);
    std::memcpy(buffer.memory, static_cast<const std::byte*>(from) + begin, piece);
    gpu_.check(
        driver().cuMemcpyHtoDAsync_v2(Driver::address_of(to) + begin, buffer.memory, piece, stream),
        "copying to the device");
    mark(buffer, stream);
    last = buffer.copied;
  }
  if (!is_in_order)
    gpu_.check(driver().cuStreamWaitEvent(gpu_.stream(), last, 0), "work after a copy");
}

void Staging::download(const void* from, void* to, std::size_t bytes) {
  const std::lock_guard lock(down_mutex_);
  const std::size_t pieces = (bytes + buffer_bytes - 1) / buffer_bytes;
  const auto size_of_piece = [&](std::size_t i) {
    return std::min(bytes - i * buffer_bytes, buffer_bytes);
  };
  // The device writes up to `buffer_count` pieces ahead of the host.
  for (std::size_t i = 0; i < pieces + buffer_count; ++i) {
    Buffer& buffer = down_[i % buffer_count];
    if (i >= buffer_count && i - buffer_count < pieces) {
      const std::size_t piece = i - buffer_count;
      wait(buffer);
      std::memcpy(static_cast<std::byte*>(to) + piece * buffer_bytes, buffer.memory,
                  size_of_piece(piece));
    }
    if (i < pieces) {
      prepare(buffer);
      gpu_.check(
          driver().cuMemcpyDtoHAsync_v2(buffer.memory, Driver::address_of(from) + i * buffer_bytes,
                                        size_of_piece(i), gpu_.stream()),
          "copying from the device");
      mark(buffer, gpu_.stream());
    }
  }
}

}  // namespace nitinol::cuda
