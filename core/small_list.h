// SmallList: a growing array whose first N elements need no allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol {

/// For trivially copyable T. Contiguous; grows; never shrinks.
template <class T, std::size_t N>
class SmallList {
 public:
  SmallList() = default;
  SmallList(const SmallList&) = delete;
  SmallList& operator=(const SmallList&) = delete;

  void push_back(const T& value) {
    if (size_ == capacity_) grow();
    data_[size_++] = value;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const T* data() const { return data_; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + size_; }

 private:
  void grow() {
    std::unique_ptr<T[]> larger(new T[2 * capacity_]);
    std::copy(begin(), end(), larger.get());
    heap_ = std::move(larger);
    data_ = heap_.get();
    capacity_ *= 2;
  }

  std::size_t size_ = 0, capacity_ = N;
  T inline_[N];  // elements beyond size_ are never read
  std::unique_ptr<T[]> heap_;
  T* data_ = inline_;
};

}  // namespace nitinol

#pragma GCC visibility pop
