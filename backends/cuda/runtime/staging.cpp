#include "backends/cuda/runtime/staging.h"

#include "backends/cuda/runtime/gpu.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace nitinol::cuda {

void Staging::prepare(Buffer& buffer, std::size_t bytes) {
  if (buffer.memory == nullptr) {
    void* memory = nullptr;
    gpu_.check(driver().cuMemHostAlloc(&memory, bytes, Driver::portable_and_mapped),
               "pinning memory");
    buffer.memory = static_cast<std::byte*>(memory);
  }
  if (buffer.copied == nullptr)
    gpu_.check(driver().cuEventCreate(&buffer.copied, Driver::no_timing), "making an event");
}

void Staging::wait(Buffer& buffer) {
  if (!buffer.is_waiting) return;
  gpu_.await(buffer.copied, "waiting for a copy");
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
  const Buffer* last = nullptr;
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
    last = &buffer;
  }
  if (last != nullptr) follow(*last, stream);
}

void Staging::follow(const Buffer& buffer, Driver::Stream stream) {
  if (stream != gpu_.stream())
    gpu_.check(driver().cuStreamWaitEvent(gpu_.stream(), buffer.copied, 0), "work after a copy");
}

Staging::Taken Staging::take(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, least_whole));
  const std::lock_guard lock(whole_mutex_);
  Whole* oldest = nullptr;
  std::size_t count = 0;
  for (const auto& whole : wholes_) {
    if (whole->bytes != size) continue;
    ++count;
    if (!whole->is_taken && (oldest == nullptr || whole->number < oldest->number))
      oldest = whole.get();
  }
  const bool is_over =
      oldest != nullptr && (!oldest->is_waiting || driver().cuEventQuery(oldest->copied) == 0);
  if (!is_over && count < most_wholes && whole_bytes_ + size <= most_whole_bytes) {
    oldest = wholes_.emplace_back(std::make_unique<Whole>()).get();
    oldest->bytes = size;
    whole_bytes_ += size;
  }
  if (oldest != nullptr) {
    prepare(*oldest, size);
    wait(*oldest);
    oldest->is_taken = true;
    oldest->number = ++last_number_;
  }
  return {*this, oldest, bytes};
}

Staging::Taken::~Taken() {
  if (whole_ == nullptr) return;
  const std::lock_guard lock(staging_.whole_mutex_);
  whole_->is_taken = false;
}

void Staging::Taken::upload(void* to, Driver::Stream stream) const {
  staging_.gpu_.check(
      driver().cuMemcpyHtoDAsync_v2(Driver::address_of(to), whole_->memory, bytes_, stream),
      "copying to the device");
  try {
    staging_.mark(*whole_, stream);
    staging_.follow(*whole_, stream);
  } catch (...) {
    driver().cuStreamSynchronize(stream);  // nobody would wait before this memory is used again
    throw;
  }
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
