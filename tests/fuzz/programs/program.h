// A random program as data: it can be run, shrunk and printed as C++.
#pragma once

#include "core/op.h"
#include "core/scalar_value.h"
#include "core/variable.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nitinol::fuzz {

/// What the elements of an input look like.
enum class Style : uint8_t {
  plain,    ///< small numbers
  special,  ///< some zeros of both signs, infinities, NaNs, denormals, extremes
  wild,     ///< any bit pattern
};

struct InputDecl {
  DType dtype = f32;
  Shape shape;
  Strides strides;
  Style style = Style::plain;
  bool is_variable = false;
  int same_as = -1;  ///< the very tensor (or Variable) that this earlier input is, or -1
};

struct Operand {
  enum class Kind : uint8_t { input, step, scalar, number };
  Kind kind = Kind::input;
  int index = 0;      ///< input, step or scalar
  double number = 0;  ///< a host number, part of the program
  DType dtype = f32;  ///< scalar and number: what it is promoted to
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Step {
  const Op* op = nullptr;
  std::vector<Operand> operands;
  Attrs attrs;
};

/// `variable` (an input) becomes `value` at the end.
struct Update {
  int variable = 0;
  Operand value;
};

struct Program {
  std::vector<InputDecl> inputs;
  int scalars = 0;
  std::vector<Step> steps;
  std::vector<Operand> outputs;  ///< inputs or steps
  std::vector<Update> updates;
};

/// Arguments for one call: as many tensors and Variables as inputs, each used where it belongs.
struct Arguments {
  std::vector<Tensor> tensors;  ///< of inputs that are no Variables
  std::vector<Variable> variables;
  std::vector<Scalar> scalars;
};

/// A tensor with these strides (any sign, any overlap), filled from `seed`.
[[nodiscard]] Tensor sample(DType dtype, const Shape& shape, const Strides& strides, Style style,
                            uint64_t seed);
/// A number for Scalar number `index`.
[[nodiscard]] Scalar sample_scalar(int index, uint64_t seed);

[[nodiscard]] Arguments arguments_of(const Program& program, uint64_t seed, Device device = {});
/// Applies the steps through whatever interpreter is current.
[[nodiscard]] std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& tensors,
                                      const std::vector<Variable>& variables,
                                      const std::vector<Scalar>& scalars, Device device = {});
/// The program as a test case that can be compiled and stepped through.
[[nodiscard]] std::string to_cpp(const Program& program, uint64_t seed);

/// The op of that name.
[[nodiscard]] const Op& op_named(std::string_view name);

}  // namespace nitinol::fuzz
