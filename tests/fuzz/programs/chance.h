// Random numbers, sizes, shapes, strides and attributes of programs.
#pragma once

#include "core/dtype.h"
#include "core/op.h"
#include "core/shape.h"

#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace nitinol::fuzz {

/// What is drawn for one program; deterministic in the seed.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed), is_large_(below(8) == 0) {}

  /// From 0 to n - 1.
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[random_() % list.size()];
  }

  DType random_dtype();
  int64_t random_size();
  Shape random_shape();
  /// Several axes of one size, and some of size 1, which no walk needs.
  Shape tiny_shape(int rank);
  /// The same, broadcast to it, transposed, or sharing a size.
  Shape related_shape(const Shape& shape);
  /// Contiguous, permuted, sparse, reversed or repeated.
  Strides random_strides(const Shape& shape);
  Dims permutation(int rank);
  /// What lists usually are, for something of this shape: some axes, sizes, steps.
  Dims random_dims(const Shape& shape);
  /// An attribute by its name, which means the same for every op that has it; nothing if that
  /// depends on what there is.
  std::optional<Attr> attr_of_any(std::string_view name);

 private:
  std::mt19937_64 random_;
  bool is_large_;
};

}  // namespace nitinol::fuzz
