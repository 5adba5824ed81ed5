// ShortArray: an array whose length is known when it is made, on the stack if it is short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace nitinol {

/// Elements are value-initialised, or copied; of the N on the stack only as many as are used.
template <class T, std::size_t N>
class ShortArray {
 public:
  explicit ShortArray(std::size_t size) : size_(size), data_(memory()) {
    if (size_ <= N) std::uninitialized_value_construct_n(data_, size_);
  }
  explicit ShortArray(std::span<const T> from) : size_(from.size()), data_(memory()) {
    size_ <= N ? std::uninitialized_copy(from.begin(), from.end(), data_)
               : std::copy(from.begin(), from.end(), data_);
  }
  ShortArray(const ShortArray&) = delete;
  ShortArray& operator=(const ShortArray&) = delete;
  ~ShortArray() {
    if (size_ <= N) std::destroy_n(data_, size_);
  }
  [[nodiscard]] T* data() { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  [[nodiscard]] std::span<T> span() { return {data_, size_}; }

 private:
  T* memory() {
    if (size_ <= N) return reinterpret_cast<T*>(stack_);
    heap_ = std::make_unique<T[]>(size_);
    return heap_.get();
  }

  const std::size_t size_;
  std::unique_ptr<T[]> heap_;
  T* const data_;
  alignas(T) std::byte stack_[N * sizeof(T)];
};

}  // namespace nitinol
