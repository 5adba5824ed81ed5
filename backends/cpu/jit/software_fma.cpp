// fma where the processor has none: a function of the module, called for each vector.
//
// f32: the product of two floats is exact in double. Adding c there and rounding to float would
// round twice, which is wrong in rare ties; rounding the sum "to odd" first (if it is inexact, take
// the neighbour whose last bit is 1) keeps the information that the second rounding needs
// (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008). The error of the sum
// comes from Knuth's TwoSum.
// f64: libm's fma for each lane, correctly rounded by definition.

#include "backends/cpu/jit/instruction.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/NoFolder.h>

#include <string>

namespace nitinol::cpu {
namespace {

using Builder = llvm::IRBuilder<llvm::NoFolder>;

llvm::Value* sum_rounded_to_odd(Builder& ir, llvm::Value* p, llvm::Value* c) {
  const auto width = llvm::cast<llvm::FixedVectorType>(p->getType())->getElementCount();
  auto* const bits_type = llvm::VectorType::get(ir.getInt64Ty(), width);
  llvm::Value* const sum = ir.CreateFAdd(p, c);
  llvm::Value* const c_part = ir.CreateFSub(sum, p);
  llvm::Value* const p_part = ir.CreateFSub(sum, c_part);
  llvm::Value* const error = ir.CreateFAdd(ir.CreateFSub(p, p_part), ir.CreateFSub(c, c_part));
  llvm::Constant* const zero = llvm::Constant::getNullValue(p->getType());
  llvm::Value* const above = ir.CreateFCmpOGT(error, zero);
  llvm::Value* const below = ir.CreateFCmpOLT(error, zero);
  llvm::Value* const positive = ir.CreateFCmpOGT(sum, zero);
  llvm::Value* const outward = ir.CreateSelect(positive, above, below);
  llvm::Value* const bits = ir.CreateBitCast(sum, bits_type);
  llvm::Constant* const one = llvm::ConstantInt::get(bits_type, 1);
  llvm::Value* const is_even =
      ir.CreateICmpEQ(ir.CreateAnd(bits, one), llvm::ConstantInt::get(bits_type, 0));
  llvm::Value* const moved =
      ir.CreateSelect(outward, ir.CreateAdd(bits, one), ir.CreateSub(bits, one));
  llvm::Value* const moves = ir.CreateAnd(is_even, ir.CreateOr(above, below));
  return ir.CreateBitCast(ir.CreateSelect(moves, moved, bits), p->getType());
}

llvm::Value* fma_of_floats(Builder& ir, llvm::Function& function) {
  auto* const type = llvm::cast<llvm::FixedVectorType>(function.getReturnType());
  auto* const wide = llvm::VectorType::get(ir.getDoubleTy(), type->getElementCount());
  const auto widen = [&](unsigned k) { return ir.CreateFPExt(function.getArg(k), wide); };
  llvm::Value* const product = ir.CreateFMul(widen(0), widen(1));
  return ir.CreateFPTrunc(sum_rounded_to_odd(ir, product, widen(2)), type);
}

llvm::Value* fma_of_doubles(Builder& ir, llvm::Function& function) {
  llvm::Type* const element = ir.getDoubleTy();
  const llvm::FunctionCallee libm = function.getParent()->getOrInsertFunction(
      "fma", llvm::FunctionType::get(element, {element, element, element}, false));
  auto* const type = llvm::cast<llvm::FixedVectorType>(function.getReturnType());
  llvm::Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    const auto part = [&](unsigned k) { return ir.CreateExtractElement(function.getArg(k), lane); };
    llvm::CallInst* const call = ir.CreateCall(libm, {part(0), part(1), part(2)});
    call->addFnAttr(llvm::Attribute::NoBuiltin);
    result = ir.CreateInsertElement(result, call, lane);
  }
  return result;
}

}  // namespace

llvm::Value* emit_software_fma(const EmitContext& context, ScalarType type,
                               const Operands& operands) {
  llvm::FixedVectorType* const vector = vector_type(context, type);
  const std::string name =
      "fma." + std::string(name_of(type)) + "." + std::to_string(context.width);
  llvm::Function* function = context.module.getFunction(name);
  if (function == nullptr) {
    function =
        llvm::Function::Create(llvm::FunctionType::get(vector, {vector, vector, vector}, false),
                               llvm::GlobalValue::InternalLinkage, name, context.module);
    function->setDoesNotThrow();
    Builder ir(llvm::BasicBlock::Create(context.module.getContext(), "", function));
    ir.CreateRet(type == ScalarType::f32 ? fma_of_floats(ir, *function)
                                         : fma_of_doubles(ir, *function));
  }
  return context.ir.CreateCall(function,
                               {operands.values[0], operands.values[1], operands.values[2]});
}

}  // namespace nitinol::cpu
