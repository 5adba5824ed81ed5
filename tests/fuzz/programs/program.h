// A random program as data: it can be run, shrunk and printed as C++.
#pragma once

#include "core/op.h"
#include "core/scalar_value.h"
#include "core/variable.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nitinol::fuzz {

/// What the elements of an input look like.
enum class Style : uint8_t {
  plain,    ///< small numbers
  special,  ///< some zeros of both signs, infinities, NaNs, denormals, extremes
  wild,     ///< any bit pattern
};

/// How an input sees the memory of an earlier one.
enum class View : uint8_t {
  same,  ///< the very tensor; of two Variables: one cell
  flipped,
  transposed,
  first_half,  ///< along the first axis
  second_half,
  every_second,  ///< along the last axis
};

struct InputDecl {
  DType dtype = f32;
  Shape shape;
  Strides strides;
  Style style = Style::plain;
  bool is_variable = false;
  bool is_parameter = false;  ///< of a Variable: made by parameter()
  bool is_captured = false;   ///< by the function, instead of passed to it
  int base = -1;              ///< the earlier input that this is a view of, or -1
  View view = View::same;
};

struct Operand {
  enum class Kind : uint8_t {
    input,   ///< as it was when the call began
    cell,    ///< what the Variable that is this input holds when it is read
    step,    ///< the result of a step
    scalar,  ///< a Scalar argument
    number,  ///< a host number, part of the program
  };
  Kind kind = Kind::input;
  int index = 0;      ///< input, step or scalar
  double number = 0;  ///< a host number
  DType dtype = f32;  ///< scalar and number: what it is promoted to
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Step {
  const Op* op = nullptr;
  std::vector<Operand> operands;
  Attrs attrs;
};

/// `variable` (an input) becomes `value` before step number `before`.
struct Update {
  int variable = 0;
  Operand value;
  int before = 0;
};

struct Program {
  std::vector<InputDecl> inputs;
  std::vector<Scalar::Kind> scalars;
  std::vector<Step> steps;
  std::vector<Operand> outputs;  ///< inputs, cells or steps
  std::vector<Update> updates;   ///< in the order in which they are made
};

/// What a call works on: per input its tensor, or its Variable.
struct Given {
  std::vector<Tensor> tensors;
  std::vector<Variable> variables;
  std::vector<Scalar> scalars;
};

/// Applies the steps through whatever interpreter is current. With `looks`, a seed, host code looks
/// at the results of about every third step, and what it sees decides what is done with them.
[[nodiscard]] std::vector<Tensor> run(const Program& program, const Given& given,
                                      std::optional<uint64_t> looks = {});
/// The program as a test case that can be compiled and stepped through.
[[nodiscard]] std::string to_cpp(const Program& program, uint64_t seed);

/// The op of that name, of the vocabulary or of extra_ops().
[[nodiscard]] const Op& op_named(std::string_view name);

}  // namespace nitinol::fuzz
