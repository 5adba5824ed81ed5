// FlatVectors: the numbers of vectors of vectors of ... numbers, and the shape they make.
#pragma once

#include "core/tensor.h"

#include <cstddef>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// Which numbers are in vectors of vectors, and in how many levels.
template <class T>
struct VectorsOf {
  using Number = T;
  static constexpr int levels = 0;
};
template <class T>
struct VectorsOf<std::vector<T>> {
  using Number = typename VectorsOf<T>::Number;
  static constexpr int levels = VectorsOf<T>::levels + 1;
};

class FlatVectorsBase {
 public:
  [[nodiscard]] Tensor shaped(const Tensor& numbers) const;

 protected:
  explicit FlatVectorsBase(int levels) : levels_(levels) {}
  /// Throws Error(shape) if another vector of this level has another length.
  void note_length(int level, std::size_t length);

 private:
  int levels_;
  Shape shape_;
};

template <class T>
class FlatVectors : public FlatVectorsBase {
 public:
  using Vectors = VectorsOf<std::vector<T>>;

  explicit FlatVectors(const std::vector<T>& list) : FlatVectorsBase(Vectors::levels) {
    append(list, 0);
  }
  std::vector<typename Vectors::Number> numbers;  ///< in row-major order

 private:
  template <class U>
  void append(const std::vector<U>& list, int level) {
    note_length(level, list.size());
    if constexpr (VectorsOf<U>::levels == 0) {
      numbers.insert(numbers.end(), list.begin(), list.end());
    } else {
      for (const U& part : list) append(part, level + 1);
    }
  }
};

}  // namespace nitinol

#pragma GCC visibility pop
