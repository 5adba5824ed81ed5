// The interpreter of scalar programs.
#pragma once

#include "core/function_ref.h"
#include "core/scalar.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nitinol {

/// What ScalarOp::load gives: the bit pattern of an element, by operand and distance.
using LoadElement = FunctionRef<uint64_t(uint64_t operand, int64_t distance)>;

/// Runs a program on one lane. args[k] is the bit pattern (zero-extended) of argument k; returns
/// the bit patterns of the instructions `wanted`. Slow: the reference for all backends.
[[nodiscard]] std::vector<uint64_t> evaluate(const ScalarProgram& program,
                                             std::span<const uint64_t> args,
                                             std::span<const uint32_t> wanted, LoadElement load);
/// The same for a program that loads nothing.
[[nodiscard]] std::vector<uint64_t> evaluate(const ScalarProgram& program,
                                             std::span<const uint64_t> args,
                                             std::span<const uint32_t> wanted);

}  // namespace nitinol
