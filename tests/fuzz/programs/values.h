// The values that a program is called with.
#pragma once

#include "tests/fuzz/programs/program.h"

#include <cstdint>
#include <vector>

namespace nitinol::fuzz {

/// True if the formula divides integers: its divisor, the last operand, must have been checked.
[[nodiscard]] bool divides_integers(const Step& step, const std::vector<Tensor>& tensors);
/// The elements as if an axis of none had one: a reduction over it gives so many.
[[nodiscard]] int64_t places_beside_none(Shape shape);

/// A tensor with these strides (any sign, any overlap), filled from `seed`.
[[nodiscard]] Tensor sample(DType dtype, const Shape& shape, const Strides& strides, Style style,
                            uint64_t seed);
/// A small number of this kind for Scalar number `index`.
[[nodiscard]] Scalar sample_scalar(Scalar::Kind kind, int index, uint64_t seed);
/// `base` seen that way; a tensor without axes as it is.
[[nodiscard]] Tensor view_of(const Tensor& base, View view);

/// Arguments for one call, in the order of the inputs that are passed.
struct Arguments {
  std::vector<Tensor> tensors;
  std::vector<Variable> variables;
  std::vector<Scalar> scalars;
};

/// Where a program's captures live: what a call gets anew and what stays the same.
///
/// Captured tensors, and whatever shares their memory, are the same at each call; a captured
/// Variable is one cell that gets a new value before each call.
class Environment {
 public:
  Environment(const Program& program, uint64_t seed);

  /// The arguments of a call with the values of set number `set`; sets the captured Variables.
  [[nodiscard]] Arguments arguments(int set);
  /// Arguments and captures in the order of the program's inputs.
  [[nodiscard]] Given given(const std::vector<Tensor>& tensors,
                            const std::vector<Variable>& variables,
                            const std::vector<Scalar>& scalars) const;
  /// All Variables of the latest call, and the captured ones of them.
  [[nodiscard]] std::vector<Variable> variables() const;
  [[nodiscard]] std::vector<Variable> captured_variables() const;

 private:
  [[nodiscard]] std::size_t root_of(std::size_t input) const;
  [[nodiscard]] bool has_fixed_memory(std::size_t input) const;
  [[nodiscard]] bool has_fixed_cell(std::size_t input) const;
  [[nodiscard]] Tensor value_of(std::size_t input, const std::vector<Tensor>& before, int set);
  [[nodiscard]] Variable variable_of(std::size_t input, const Tensor& value,
                                     const std::vector<Variable>& before);

  const Program& program_;
  uint64_t seed_;
  std::vector<Tensor> fixed_;      ///< per input: a value that stays, once there is one
  std::vector<Variable> cells_;    ///< per input: the same for Variables
  std::vector<Variable> present_;  ///< per input: the Variables of the latest call
};

}  // namespace nitinol::fuzz
