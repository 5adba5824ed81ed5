// The one table of samples: operands for every op, with edge cases. Drives eager against the
// reference, compiled against eager, and whatever else must hold for all ops.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <string>
#include <vector>

namespace nitinol::test {

/// Operands and attributes of one application.
struct Sample {
  std::vector<Tensor> inputs;
  Attrs attrs;
  /// Error allowed, in units in the last place of the result's dtype.
  double ulps = 1;
  /// And in addition, in units of the dtype's epsilon times the largest operand: for sums.
  double absolute = 0;

  [[nodiscard]] std::vector<const Tensor*> pointers() const;
  /// "float32[3], float32[] axes=[0]".
  [[nodiscard]] std::string describe(const Op& op) const;
};

/// Samples of `op` for every dtype it accepts. Throws std::runtime_error for an op without any.
[[nodiscard]] std::vector<Sample> samples(const Op& op);

/// Values of a dtype with its edge cases: zeros, limits, denormal and special numbers.
[[nodiscard]] Tensor edge_values(DType dtype);
/// Normal random numbers (integers: small ones) that depend on the seed only.
[[nodiscard]] Tensor random_values(DType dtype, const Shape& shape, uint64_t seed);
/// All dtypes in a set.
[[nodiscard]] std::vector<DType> list_of(DTypes dtypes);

/// The same elements at other strides: reversed axes in memory, every second element, backwards.
[[nodiscard]] std::vector<Tensor> strided_variants(const Tensor& x);

}  // namespace nitinol::test
