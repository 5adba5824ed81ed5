// SmallList: a growing array whose first N elements need no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// For trivially copyable T. Contiguous; grows; never shrinks but by clear().
template <class T, std::size_t N>
class SmallList {
 public:
  void push_back(const T& value) {
    if (heap_.empty()) {
      if (size_ < N) {
        inline_[size_++] = value;
        return;
      }
      heap_.assign(inline_.begin(), inline_.end());
    }
    heap_.push_back(value);
    size_ = heap_.size();
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const T* data() const { return heap_.empty() ? inline_.data() : heap_.data(); }
  const T& operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size_; }

 private:
  std::size_t size_ = 0;
  std::array<T, N> inline_;  // elements beyond size_ are never read
  std::vector<T> heap_;
};

}  // namespace nitinol

#pragma GCC visibility pop
