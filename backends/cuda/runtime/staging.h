// Staging: pinned memory of the host through which uploads and downloads pass.
#pragma once

#include "backends/cuda/runtime/libraries.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace nitinol::cuda {

class Gpu;

/// A copy from memory that is not pinned would wait for the device. What makes a tensor's elements
/// writes them into pinned memory as large as the tensor. What lies in other memory goes through
/// rings of buffers: while one buffer is copied by the device, the next is filled. One for each way
/// and stream: a buffer that a small copy behind much work is to read would hold up large ones that
/// go beside that work.
class Staging {
 public:
  explicit Staging(Gpu& gpu) : gpu_(gpu) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Asks for the copy, and returns when `from` may be reused. By whichever stream, what is asked
  /// of the device's own stream afterwards comes after the copy.
  void upload(const void* from, void* to, std::size_t bytes, Driver::Stream stream);
  /// Pinned memory that is the caller's alone, to be written and then copied to the device.
  class Taken;
  /// None if there is none for so many bytes, or others have all there is.
  [[nodiscard]] Taken take(std::size_t bytes);
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

  /// As large as what is copied from it, for one tensor.
  struct Whole : Buffer {
    std::size_t bytes = 0;
    uint64_t number = 0;  ///< of its last use: the smallest is over first
    bool is_taken = false;
  };
  static constexpr std::size_t least_whole = std::size_t{64} << 10, most_wholes = 4;
  static constexpr std::size_t most_whole_bytes = std::size_t{256} << 20;  ///< of all

  void prepare(Buffer& buffer, std::size_t bytes = buffer_bytes);
  void wait(Buffer& buffer);
  void mark(Buffer& buffer, Driver::Stream stream);
  /// What is asked of the device's own stream afterwards comes after this copy by another.
  void follow(const Buffer& buffer, Driver::Stream stream);

  Gpu& gpu_;
  Uploads in_order_, beside_;  ///< by the device's own stream, and by the one of copies
  std::mutex whole_mutex_;
  std::vector<std::unique_ptr<Whole>> wholes_;
  std::size_t whole_bytes_ = 0;
  uint64_t last_number_ = 0;
  std::mutex down_mutex_;
  Ring down_;
};

class Staging::Taken {
 public:
  Taken(Staging& staging, Whole* whole, std::size_t bytes)
      : staging_(staging), whole_(whole), bytes_(bytes) {}
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken();
  explicit operator bool() const { return whole_ != nullptr; }
  [[nodiscard]] std::span<std::byte> memory() const { return {whole_->memory, bytes_}; }
  /// As Staging::upload().
  void upload(void* to, Driver::Stream stream) const;

 private:
  Staging& staging_;
  Whole* const whole_;
  const std::size_t bytes_;
};

}  // namespace nitinol::cuda
