// Instructions, numbers and elements as expressions of CUDA C, in the words of prelude.h.
#pragma once

#include "core/dtype.h"
#include "core/scalar.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace nitinol::cuda {

/// What values of a type are called: "float".
[[nodiscard]] std::string_view word_of(ScalarType type);
/// What elements are called in memory: "u16" of f16.
[[nodiscard]] std::string_view stored_word(DType dtype);
/// The value of these bits.
[[nodiscard]] std::string literal(ScalarType type, uint64_t bits);

/// An element in memory as a value of its compute type, and back; both exact.
[[nodiscard]] std::string decoded(DType dtype, const std::string& stored);
[[nodiscard]] std::string encoded(DType dtype, const std::string& value);

/// The values that an instruction reads.
struct Operands {
  std::array<std::string, 3> names;
  ScalarType from;  ///< type of the first
};
/// What the instruction computes. Not for argument, load, begin_if and end_if, which are no
/// expressions.
[[nodiscard]] std::string expression(const ScalarInstr& instr, const Operands& operands);

/// "TABLE const u32 table0[] = {...};"
[[nodiscard]] std::string table_text(uint64_t id);

}  // namespace nitinol::cuda
