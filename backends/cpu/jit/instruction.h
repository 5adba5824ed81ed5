// One scalar instruction as vector code.
#pragma once

#include "backends/cpu/jit/target.h"
#include "core/scalar.h"

#include <array>
#include <cstdint>

namespace llvm {
class Constant;
class FixedVectorType;
class IRBuilderBase;
class Module;
class Type;
class Value;
}  // namespace llvm

namespace nitinol::cpu {

/// Where code goes and what it looks like.
struct EmitContext {
  llvm::IRBuilderBase& ir;  ///< must not fold: folding is the compiler's, and done once, before
  llvm::Module& module;
  Target target;
  int width = 1;  ///< elements per vector
};

[[nodiscard]] llvm::Type* element_type(const EmitContext& context, ScalarType type);
[[nodiscard]] llvm::FixedVectorType* vector_type(const EmitContext& context, ScalarType type);
/// A vector whose elements all have these bits.
[[nodiscard]] llvm::Constant* splat(const EmitContext& context, ScalarType type, uint64_t bits);
/// A vector of copies of one element.
[[nodiscard]] llvm::Value* splat(const EmitContext& context, llvm::Value* element);

/// The operands of an instruction: vectors, and what must be known of them.
struct Operands {
  std::array<llvm::Value*, 3> values = {};  ///< a, b, c
  ScalarType type = ScalarType::f32;        ///< of a
};

/// The value of any instruction but constant, argument, begin_if and end_if. Lanes where the
/// instruction is undefined (padding divided by zero) get some value.
[[nodiscard]] llvm::Value* emit_instruction(const EmitContext& context, const ScalarInstr& instr,
                                            const Operands& operands);

/// f32 from and to f16, whose bits are u16 to everybody else. For Target::has_half.
[[nodiscard]] llvm::Value* emit_widened_half(const EmitContext& context, llvm::Value* half);
[[nodiscard]] llvm::Value* emit_rounded_half(const EmitContext& context, llvm::Value* value);

/// a * b + c rounded once, for processors without that instruction.
[[nodiscard]] llvm::Value* emit_software_fma(const EmitContext& context, ScalarType type,
                                             const Operands& operands);

}  // namespace nitinol::cpu
