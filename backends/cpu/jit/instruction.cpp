// Each scalar instruction is a few LLVM instructions on <width x T>, the same at every level of the
// instruction set; LLVM splits vectors that are wider than its registers. What the processor
// leaves undefined, or LLVM calls poison, is spelt out: shift counts are masked, conversions
// saturate, divisors of padding lanes are replaced by 1.

#include "backends/cpu/jit/instruction.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <string>

namespace nitinol::cpu {
namespace {

using llvm::Value;

unsigned bits_in(ScalarType type) {
  return static_cast<unsigned>(size_of(type)) * 8;
}

class InstructionEmitter {
 public:
  InstructionEmitter(const EmitContext& context, const ScalarInstr& instr, const Operands& operands)
      : context_(context),
        ir_(context.ir),
        op_(instr.op),
        type_(instr.type),
        from_(operands.type),
        imm_(instr.imm),
        a_(operands.values[0]),
        b_(operands.values[1]),
        c_(operands.values[2]),
        operands_(operands) {}

  [[nodiscard]] Value* emit() const {
    switch (op_) {
      case ScalarOp::eq:
      case ScalarOp::ne:
      case ScalarOp::lt:
      case ScalarOp::le:
        return compare();
      case ScalarOp::select:
        return ir_.CreateSelect(c_, a_, b_);
      case ScalarOp::convert:
        return convert();
      case ScalarOp::bitcast:
        return bitcast();
      case ScalarOp::table:
        return table();
      default:
        break;
    }
    if (is_float(type_)) return float_operation();
    return type_ == ScalarType::pred ? bit_operation() : int_operation();
  }

 private:
  [[nodiscard]] llvm::FixedVectorType* vector(ScalarType type) const {
    return vector_type(context_, type);
  }
  [[nodiscard]] llvm::Constant* constant(uint64_t bits) const {
    return splat(context_, type_, bits);
  }
  Value* intrinsic(llvm::Intrinsic::ID id, Value* x) const {
    return ir_.CreateUnaryIntrinsic(id, x);
  }

  [[nodiscard]] Value* compare() const {
    if (is_float(from_)) {
      if (op_ == ScalarOp::eq) return ir_.CreateFCmpOEQ(a_, b_);
      if (op_ == ScalarOp::ne) return ir_.CreateFCmpUNE(a_, b_);
      return op_ == ScalarOp::lt ? ir_.CreateFCmpOLT(a_, b_) : ir_.CreateFCmpOLE(a_, b_);
    }
    if (op_ == ScalarOp::eq) return ir_.CreateICmpEQ(a_, b_);
    if (op_ == ScalarOp::ne) return ir_.CreateICmpNE(a_, b_);
    if (is_signed_integer(from_)) {
      return op_ == ScalarOp::lt ? ir_.CreateICmpSLT(a_, b_) : ir_.CreateICmpSLE(a_, b_);
    }
    return op_ == ScalarOp::lt ? ir_.CreateICmpULT(a_, b_) : ir_.CreateICmpULE(a_, b_);
  }

  [[nodiscard]] Value* float_operation() const {
    switch (op_) {
      case ScalarOp::add:
        return ir_.CreateFAdd(a_, b_);
      case ScalarOp::sub:
        return ir_.CreateFSub(a_, b_);
      case ScalarOp::mul:
        return ir_.CreateFMul(a_, b_);
      case ScalarOp::div:
        return ir_.CreateFDiv(a_, b_);
      case ScalarOp::fma:
        if (!context_.target.has_fma) return emit_software_fma(context_, type_, operands_);
        return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {a_->getType()}, {a_, b_, c_});
      case ScalarOp::neg:
        return ir_.CreateFNeg(a_);
      case ScalarOp::abs:
        return intrinsic(llvm::Intrinsic::fabs, a_);
      case ScalarOp::sqrt:
        return intrinsic(llvm::Intrinsic::sqrt, a_);
      case ScalarOp::round_f16:
        return emit_widened_half(context_, emit_rounded_half(context_, a_));
      default:
        break;
    }
    return context_.target.has_round ? round() : round_by_addition();
  }

  [[nodiscard]] Value* round() const {
    if (op_ == ScalarOp::floor) return intrinsic(llvm::Intrinsic::floor, a_);
    if (op_ == ScalarOp::ceil) return intrinsic(llvm::Intrinsic::ceil, a_);
    if (op_ == ScalarOp::trunc) return intrinsic(llvm::Intrinsic::trunc, a_);
    return intrinsic(llvm::Intrinsic::roundeven, a_);
  }

  /// Adding 2^mantissa to a smaller number rounds it to an integer.
  [[nodiscard]] Value* round_by_addition() const {
    llvm::FixedVectorType* const type = vector(type_);
    llvm::Constant* const magic =
        llvm::ConstantFP::get(type, type_ == ScalarType::f32 ? 0x1p23 : 0x1p52);
    llvm::Constant* const one = llvm::ConstantFP::get(type, 1.0);
    Value* const size = intrinsic(llvm::Intrinsic::fabs, a_);
    Value* const nearby = ir_.CreateFSub(ir_.CreateFAdd(size, magic), magic);
    Value* whole = ir_.CreateSelect(ir_.CreateFCmpOLT(size, magic), nearby, size);
    if (op_ == ScalarOp::trunc) {
      whole = ir_.CreateSelect(ir_.CreateFCmpOGT(whole, size), ir_.CreateFSub(whole, one), whole);
    }
    whole = with_sign_of_a(whole);
    if (op_ == ScalarOp::floor) {
      whole = ir_.CreateSelect(ir_.CreateFCmpOGT(whole, a_), ir_.CreateFSub(whole, one), whole);
    } else if (op_ == ScalarOp::ceil) {
      whole = with_sign_of_a(
          ir_.CreateSelect(ir_.CreateFCmpOLT(whole, a_), ir_.CreateFAdd(whole, one), whole));
    }
    return whole;
  }
  Value* with_sign_of_a(Value* x) const {
    return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, a_);
  }

  /// Integers and conditions.
  [[nodiscard]] Value* bit_operation() const {
    switch (op_) {
      case ScalarOp::bit_and:
        return ir_.CreateAnd(a_, b_);
      case ScalarOp::bit_or:
        return ir_.CreateOr(a_, b_);
      case ScalarOp::bit_xor:
        return ir_.CreateXor(a_, b_);
      default:
        return ir_.CreateNot(a_);
    }
  }

  [[nodiscard]] Value* int_operation() const {
    switch (op_) {
      case ScalarOp::add:
        return ir_.CreateAdd(a_, b_);
      case ScalarOp::sub:
        return ir_.CreateSub(a_, b_);
      case ScalarOp::mul:
        return ir_.CreateMul(a_, b_);
      case ScalarOp::neg:
        return ir_.CreateNeg(a_);
      case ScalarOp::abs:
        if (!is_signed_integer(type_)) return a_;
        return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a_, ir_.getFalse());
      case ScalarOp::int_div:
        return quotient();
      case ScalarOp::int_rem:
        return ir_.CreateSub(a_, ir_.CreateMul(quotient(), b_));
      case ScalarOp::mul_high:
        return mul_high();
      case ScalarOp::shl:
        return ir_.CreateShl(a_, shift_count());
      case ScalarOp::shr:
        return is_signed_integer(type_) ? ir_.CreateAShr(a_, shift_count())
                                        : ir_.CreateLShr(a_, shift_count());
      default:
        return bit_operation();
    }
  }

  [[nodiscard]] Value* shift_count() const {
    const unsigned mask = bits_in(type_) - 1;
    const auto* const fixed = llvm::dyn_cast<llvm::Constant>(b_);
    if (fixed != nullptr) {
      return constant(fixed->getUniqueInteger().getLimitedValue() & mask);
    }
    return ir_.CreateAnd(b_, constant(mask));
  }

  /// Up to 32 bits the division runs in floating point, which is exact: with n bits, quotients
  /// that are not whole are at least 2^-n away from whole ones, more than the rounding error.
  [[nodiscard]] Value* quotient() const {
    const bool negates = is_signed_integer(type_);
    llvm::Constant* const one = constant(1);
    Value* divides_by_minus_one = nullptr;
    Value* replaced = ir_.CreateICmpEQ(b_, constant(0));
    if (negates) {
      divides_by_minus_one = ir_.CreateICmpEQ(b_, llvm::Constant::getAllOnesValue(b_->getType()));
      replaced = ir_.CreateOr(replaced, divides_by_minus_one);
    }
    Value* const divisor = ir_.CreateSelect(replaced, one, b_);
    Value* result = nullptr;
    if (size_of(type_) == 8) {
      result = negates ? ir_.CreateSDiv(a_, divisor) : ir_.CreateUDiv(a_, divisor);
    } else {
      llvm::Type* const real = vector(size_of(type_) == 4 ? ScalarType::f64 : ScalarType::f32);
      const auto widen = [&](Value* x) {
        return negates ? ir_.CreateSIToFP(x, real) : ir_.CreateUIToFP(x, real);
      };
      Value* const ratio = ir_.CreateFDiv(widen(a_), widen(divisor));
      result =
          negates ? ir_.CreateFPToSI(ratio, a_->getType()) : ir_.CreateFPToUI(ratio, a_->getType());
    }
    if (!negates) return result;
    return ir_.CreateSelect(divides_by_minus_one, ir_.CreateNeg(a_), result);
  }

  [[nodiscard]] Value* mul_high() const {
    if (size_of(type_) == 8) return mul_high_64();
    const unsigned bits = bits_in(type_);
    llvm::Type* const wide =
        llvm::FixedVectorType::get(ir_.getIntNTy(bits * 2), static_cast<unsigned>(context_.width));
    const auto widen = [&](Value* x) {
      return is_signed_integer(type_) ? ir_.CreateSExt(x, wide) : ir_.CreateZExt(x, wide);
    };
    Value* const product = ir_.CreateMul(widen(a_), widen(b_));
    return ir_.CreateTrunc(ir_.CreateLShr(product, uint64_t{bits}), a_->getType());
  }

  /// As native::mul_high: vector units have no 128-bit product.
  [[nodiscard]] Value* mul_high_64() const {
    llvm::Constant* const low = constant(0xffffffff);
    const auto lower = [&](Value* x) { return ir_.CreateAnd(x, low); };
    const auto upper = [&](Value* x) { return ir_.CreateLShr(x, uint64_t{32}); };
    Value *const a0 = lower(a_), *const a1 = upper(a_), *const b0 = lower(b_),
                 *const b1 = upper(b_);
    Value* const middle = ir_.CreateAdd(ir_.CreateMul(a1, b0), upper(ir_.CreateMul(a0, b0)));
    Value* const cross = ir_.CreateAdd(ir_.CreateMul(a0, b1), lower(middle));
    Value* const high =
        ir_.CreateAdd(ir_.CreateAdd(ir_.CreateMul(a1, b1), upper(middle)), upper(cross));
    if (!is_signed_integer(type_)) return high;
    const auto if_negative = [&](Value* x, Value* y) {
      return ir_.CreateAnd(ir_.CreateAShr(x, uint64_t{63}), y);
    };
    return ir_.CreateSub(high, ir_.CreateAdd(if_negative(a_, b_), if_negative(b_, a_)));
  }

  /// As native::saturate.
  [[nodiscard]] Value* saturated() const {
    llvm::FixedVectorType* const to = vector(type_);
    const bool is_signed = is_signed_integer(type_);
    const bool fits_between =
        size_of(type_) < 4 || (type_ == ScalarType::i32 && from_ == ScalarType::f64);
    if (!fits_between) {
      return ir_.CreateIntrinsic(
          is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
          {to, a_->getType()}, {a_});
    }
    const double values = std::ldexp(1.0, static_cast<int>(bits_in(type_)));
    const double least = is_signed ? -values / 2 : 0;
    llvm::Constant* const low = llvm::ConstantFP::get(a_->getType(), least);
    llvm::Constant* const high = llvm::ConstantFP::get(a_->getType(), least + values - 1);
    llvm::Constant* const zero = llvm::Constant::getNullValue(a_->getType());
    Value* const number = ir_.CreateSelect(ir_.CreateFCmpOEQ(a_, a_), a_, zero);
    Value* const above = ir_.CreateSelect(ir_.CreateFCmpOLT(number, low), low, number);
    Value* const inside = ir_.CreateSelect(ir_.CreateFCmpOLT(high, above), high, above);
    return ir_.CreateSExtOrTrunc(ir_.CreateFPToSI(inside, vector(ScalarType::i32)), to);
  }

  [[nodiscard]] Value* convert() const {
    llvm::FixedVectorType* const to = vector(type_);
    if (type_ == from_) return a_;
    if (type_ == ScalarType::pred) {
      llvm::Constant* const zero = llvm::Constant::getNullValue(a_->getType());
      return is_float(from_) ? ir_.CreateFCmpUNE(a_, zero) : ir_.CreateICmpNE(a_, zero);
    }
    if (is_float(type_)) {
      if (is_float(from_)) {
        return type_ == ScalarType::f64 ? ir_.CreateFPExt(a_, to) : ir_.CreateFPTrunc(a_, to);
      }
      return is_signed_integer(from_) ? ir_.CreateSIToFP(a_, to) : ir_.CreateUIToFP(a_, to);
    }
    if (is_float(from_)) return saturated();
    return is_signed_integer(from_) ? ir_.CreateSExtOrTrunc(a_, to) : ir_.CreateZExtOrTrunc(a_, to);
  }

  [[nodiscard]] Value* bitcast() const {
    if (type_ == from_) return a_;
    if (from_ == ScalarType::pred) return ir_.CreateZExt(a_, vector(type_));
    if (type_ == ScalarType::pred) return convert();
    return ir_.CreateBitCast(a_, vector(type_));
  }

  [[nodiscard]] llvm::GlobalVariable* table_in_module() const {
    const ConstantTable& table = constant_table(static_cast<TableId>(imm_));
    const std::string name = "table." + std::string(table.name);
    if (llvm::GlobalVariable* const known = context_.module.getNamedGlobal(name)) return known;
    auto* const words = llvm::ConstantDataArray::get(
        context_.module.getContext(),
        llvm::ArrayRef<uint32_t>(table.words.data(), table.words.size()));
    auto* const made =
        llvm::cast<llvm::GlobalVariable>(context_.module.getOrInsertGlobal(name, words->getType()));
    made->setConstant(true);
    made->setLinkage(llvm::GlobalValue::PrivateLinkage);
    made->setInitializer(words);
    return made;
  }

  [[nodiscard]] Value* table() const {
    llvm::GlobalVariable* const words = table_in_module();
    llvm::Type* const word = ir_.getInt32Ty();
    const llvm::Align align(4);
    if (context_.target.has_gather && context_.width >= 4) {
      return ir_.CreateMaskedGather(vector(type_), ir_.CreateGEP(word, words, a_), align);
    }
    Value* result = llvm::PoisonValue::get(vector(type_));
    for (int lane = 0; lane < context_.width; ++lane) {
      Value* const index = ir_.CreateZExt(ir_.CreateExtractElement(a_, static_cast<uint64_t>(lane)),
                                          ir_.getInt64Ty());
      Value* const entry = ir_.CreateAlignedLoad(word, ir_.CreateGEP(word, words, index), align);
      result = ir_.CreateInsertElement(result, entry, static_cast<uint64_t>(lane));
    }
    return result;
  }

  const EmitContext& context_;
  llvm::IRBuilderBase& ir_;
  ScalarOp op_;
  ScalarType type_, from_;
  uint64_t imm_;
  Value *a_, *b_, *c_;
  const Operands& operands_;
};

}  // namespace

llvm::Type* element_type(const EmitContext& context, ScalarType type) {
  if (type == ScalarType::pred) return context.ir.getInt1Ty();
  if (type == ScalarType::f32) return context.ir.getFloatTy();
  if (type == ScalarType::f64) return context.ir.getDoubleTy();
  return context.ir.getIntNTy(bits_in(type));
}

llvm::FixedVectorType* vector_type(const EmitContext& context, ScalarType type) {
  return llvm::FixedVectorType::get(element_type(context, type),
                                    static_cast<unsigned>(context.width));
}

llvm::Constant* splat(const EmitContext& context, ScalarType type, uint64_t bits) {
  llvm::Type* const element = element_type(context, type);
  const llvm::ElementCount width =
      llvm::ElementCount::getFixed(static_cast<unsigned>(context.width));
  if (!is_float(type)) {
    return llvm::ConstantVector::getSplat(
        width, llvm::ConstantInt::get(element->getContext(),
                                      llvm::APInt(element->getIntegerBitWidth(), bits)));
  }
  const llvm::APFloat value(element->getFltSemantics(), llvm::APInt(bits_in(type), bits));
  return llvm::ConstantVector::getSplat(width, llvm::ConstantFP::get(element->getContext(), value));
}

llvm::Value* splat(const EmitContext& context, llvm::Value* element) {
  return context.ir.CreateVectorSplat(static_cast<unsigned>(context.width), element);
}

llvm::Value* emit_instruction(const EmitContext& context, const ScalarInstr& instr,
                              const Operands& operands) {
  return InstructionEmitter(context, instr, operands).emit();
}

// LLVM's type half appears here alone, between two instructions of the processor.

llvm::Value* emit_widened_half(const EmitContext& context, llvm::Value* half) {
  llvm::Type* const type =
      llvm::FixedVectorType::get(context.ir.getHalfTy(), static_cast<unsigned>(context.width));
  return context.ir.CreateFPExt(context.ir.CreateBitCast(half, type),
                                vector_type(context, ScalarType::f32));
}

llvm::Value* emit_rounded_half(const EmitContext& context, llvm::Value* value) {
  llvm::Type* const type =
      llvm::FixedVectorType::get(context.ir.getHalfTy(), static_cast<unsigned>(context.width));
  return context.ir.CreateBitCast(context.ir.CreateFPTrunc(value, type),
                                  vector_type(context, ScalarType::u16));
}

}  // namespace nitinol::cpu
