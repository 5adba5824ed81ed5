#include "backends/cpu/jit/control_flow.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>

namespace nitinol::cpu {

using llvm::BasicBlock;
using llvm::Value;

BasicBlock* new_block(llvm::IRBuilderBase& ir, const char* name) {
  return BasicBlock::Create(ir.getContext(), name, ir.GetInsertBlock()->getParent());
}

void for_each(llvm::IRBuilderBase& ir, Value* first, Value* last,
              FunctionRef<Value*(Value*)> body) {
  BasicBlock* const before = ir.GetInsertBlock();
  BasicBlock* const loop = new_block(ir, "loop");
  BasicBlock* const after = new_block(ir, "after");
  ir.CreateCondBr(ir.CreateICmpSLT(first, last), loop, after);
  ir.SetInsertPoint(loop);
  llvm::PHINode* const i = ir.CreatePHI(ir.getInt64Ty(), 2);
  i->addIncoming(first, before);
  Value* next = body(i);
  if (next == nullptr) next = ir.CreateAdd(i, ir.getInt64(1));
  i->addIncoming(next, ir.GetInsertBlock());
  ir.CreateCondBr(ir.CreateICmpSLT(next, last), loop, after);
  ir.SetInsertPoint(after);
}

void when(llvm::IRBuilderBase& ir, Value* condition, FunctionRef<void()> body) {
  BasicBlock* const inside = new_block(ir, "when");
  BasicBlock* const after = new_block(ir, "after");
  ir.CreateCondBr(condition, inside, after);
  ir.SetInsertPoint(inside);
  body();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
}

void either(llvm::IRBuilderBase& ir, Value* condition, FunctionRef<void()> usual,
            FunctionRef<void()> rare) {
  BasicBlock* const on_usual = new_block(ir, "usual");
  BasicBlock* const on_rare = new_block(ir, "rare");
  BasicBlock* const after = new_block(ir, "after");
  ir.CreateCondBr(condition, on_usual, on_rare,
                  llvm::MDBuilder(ir.getContext()).createBranchWeights(2000, 1));
  ir.SetInsertPoint(on_usual);
  usual();
  ir.CreateBr(after);
  ir.SetInsertPoint(on_rare);
  rare();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
}

}  // namespace nitinol::cpu
