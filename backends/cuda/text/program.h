// Scalar programs and joins as statements.
#pragma once

#include "backends/cuda/text/writer.h"
#include "core/function_ref.h"
#include "core/reduction.h"
#include "core/scalar.h"

#include <cstddef>
#include <span>
#include <string>

namespace nitinol::cuda {

/// The expression of a `load`: of operand instr.imm, `distance` elements from the present one.
using PrintLoad = FunctionRef<std::string(const ScalarInstr& instr, const std::string& distance)>;

/// Writes the instructions; value number i becomes the constant value_name(i).
void write_program(Writer& out, const ScalarProgram& program,
                   std::span<const std::string> arguments, PrintLoad load);
[[nodiscard]] std::string value_name(uint32_t id);

/// Writes what joins values of reduction number `r`: the type `Joined<r>`, and the functions
/// `nothing<r>()`, the neutral element; `placed<r>(value, position)`, what an element brings;
/// `join<r>(a, b)`, a before b; `shuffled<r>(x, lanes)`; `fresh<r>(at)`, what another block wrote;
/// `result<r>(x)`.
void write_joins(Writer& out, const Reduction& reduction, std::size_t r);

/// Writes the function `name`(a, b) of the same: a before b. Not for arg_*.
void write_join_of_values(Writer& out, const Reduction& reduction, const std::string& name);

/// What the result of a reduction is called: its type, or i64 of arg_*.
[[nodiscard]] ScalarType result_type(const Reduction& reduction);

}  // namespace nitinol::cuda
