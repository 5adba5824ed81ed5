// Loops and branches of generated code. Each leaves the builder where the code goes on.
#pragma once

#include "core/function_ref.h"

namespace llvm {
class BasicBlock;
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace nitinol::cpu {

/// A block of the function that is being built.
[[nodiscard]] llvm::BasicBlock* new_block(llvm::IRBuilderBase& ir, const char* name);

/// for (i = first; i < last; i = body(i)), all i64; i + 1 where the body gives null.
void for_each(llvm::IRBuilderBase& ir, llvm::Value* first, llvm::Value* last,
              FunctionRef<llvm::Value*(llvm::Value*)> body);

/// if (condition) body()
void when(llvm::IRBuilderBase& ir, llvm::Value* condition, FunctionRef<void()> body);

/// if (condition) usual() else rare()
void either(llvm::IRBuilderBase& ir, llvm::Value* condition, FunctionRef<void()> usual,
            FunctionRef<void()> rare);

}  // namespace nitinol::cpu
