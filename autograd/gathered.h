// Gathered: the gradient of one value, as it arrives.
#pragma once

#include "core/tensor.h"

#include <boost/container/small_vector.hpp>

#include <cstdint>

namespace nitinol::autograd {

/// What arrived, added up in the order of arrival, to the bit. Gradients of slices stay as they are
/// until the sum is asked for: a loop that reads x[t] at each step costs a gradient of x's size,
/// not one for each step.
class Gathered {
 public:
  struct Slice {
    Dims starts;  ///< its first index along each axis
    Tensor gradient;
  };

  [[nodiscard]] bool is_empty() const { return slices_.empty(); }
  /// A gradient of the whole value.
  void add(const Tensor& gradient);
  /// A gradient of the elements from index `starts` on, as many as it has itself, of a value of
  /// spec `whole`.
  void add_slice(const Tensor& gradient, const Dims& starts, const Spec& whole);
  /// Whether slices alone have arrived, all apart from this one.
  [[nodiscard]] bool is_apart_from(const Dims& starts, const Shape& sizes) const;
  /// The sum; undefined if nothing has arrived.
  [[nodiscard]] Tensor sum();

 private:
  void merge();

  Spec spec_;  ///< of the whole value
  boost::container::small_vector<Slice, 1> slices_;
  int64_t elements_ = 0;  ///< of all slices
};

}  // namespace nitinol::autograd
