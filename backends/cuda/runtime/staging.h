// Staging: pinned memory of the host through which uploads and downloads pass.
#pragma once

#include "backends/cuda/runtime/libraries.h"

#include <array>
#include <cstddef>
#include <mutex>

namespace nitinol::cuda {

class Gpu;

/// A copy from memory that is not pinned would wait for the device. Rings of buffers: while one
/// buffer is copied by the device, the next is filled. One for each way and stream: a buffer that a
/// small copy behind much work is to read would hold up large ones that go beside that work.
class Staging {
 public:
  explicit Staging(Gpu& gpu) : gpu_(gpu) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Asks for the copy, and returns when `from` may be reused. By whichever stream, what is asked
  /// of the device's own stream afterwards comes after the copy.
  void upload(const void* from, void* to, std::size_t bytes, Driver::Stream stream);
  /// Waits for what was asked for earlier.
  void download(const void* from, void* to, std::size_t bytes);

 private:
  struct Buffer {
    std::byte* memory = nullptr;
    Driver::Event copied = nullptr;
    bool is_waiting = false;  ///< the device may still read or write it
  };
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20, buffer_count = 4;
  using Ring = std::array<Buffer, buffer_count>;
  struct Uploads {
    std::mutex mutex;
    Ring ring;
    std::size_t next = 0;
  };

  void prepare(Buffer& buffer);
  void wait(Buffer& buffer);
  void mark(Buffer& buffer, Driver::Stream stream);

  Gpu& gpu_;
  Uploads in_order_, beside_;  ///< by the device's own stream, and by the one of copies
  std::mutex down_mutex_;
  Ring down_;
};

}  // namespace nitinol::cuda
