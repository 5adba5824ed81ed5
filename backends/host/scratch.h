// Scratch: short-lived arrays of one thread, on the stack while they are small.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace nitinol::host {

/// Hands out uninitialised, 64-byte aligned arrays that live as long as it does. For trivial types.
class Scratch {
 public:
  Scratch() {}  // NOLINT: the buffer stays uninitialised
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  [[nodiscard]] T* take(std::size_t count) {
    return reinterpret_cast<T*>(take_bytes(count * sizeof(T)));
  }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };

  std::byte* take_bytes(std::size_t bytes) {
    const std::size_t lines = (bytes + sizeof(Line) - 1) / sizeof(Line);
    if (used_ + lines <= inline_.size()) {
      std::byte* const at = inline_[used_].bytes.data();
      used_ += lines;
      return at;
    }
    large_.push_back(std::make_unique_for_overwrite<Line[]>(lines));
    return large_.back()[0].bytes.data();
  }

  std::array<Line, 96> inline_;
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<Line[]>> large_;
};

}  // namespace nitinol::host
