// How vectors come from and go to memory.
//
//   unit stride     one vector load; the incomplete last vector is masked where the processor can
//   other strides   a load per lane
//   lanes           of accumulators: whole vectors always, of which an incomplete one changes a
//   part incomplete, without masks, or strided: copied element by element from or to a buffer on
//   the stack, which is loaded and stored as a whole
//
// Gather instructions are no faster than loads per lane on the processors we measured.

#include "backends/cpu/jit/streams.h"

#include "backends/cpu/jit/control_flow.h"
#include "backends/host/stage.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace nitinol::cpu {

using llvm::Value;

namespace {

llvm::Align element_align(const Stream& stream) {
  return llvm::Align(static_cast<uint64_t>(size_of(stream.type)));
}

}  // namespace

Value* StreamEmitter::row_of(const Stream& stream, Value* outer) {
  llvm::IRBuilderBase& ir = context_.ir;
  if (stream.outer_step == nullptr) return stream.start;
  Value* const offset = ir.CreateMul(outer, stream.outer_step);
  if (stream.is_counted) return ir.CreateAdd(stream.start, offset);
  return ir.CreateGEP(ir.getInt8Ty(), stream.start, offset);
}

Value* StreamEmitter::load_uniform(const Stream& stream) {
  if (stream.is_counted) return splat(context_, stream.row);
  return as_computed(
      stream, splat(context_, context_.ir.CreateAlignedLoad(element_type(context_, stream.type),
                                                            stream.row, element_align(stream))));
}

Value* StreamEmitter::as_computed(const Stream& stream, Value* stored) {
  return stream.is_half ? emit_widened_half(context_, stored) : stored;
}

Value* StreamEmitter::as_stored(const Stream& stream, Value* computed) {
  return stream.is_half ? emit_rounded_half(context_, computed) : computed;
}

Value* StreamEmitter::step_of(const Stream& stream) {
  if (stream.access == Access::strided) return stream.inner_step;
  return context_.ir.getInt64(static_cast<uint64_t>(size_of(stream.type)));
}

Value* StreamEmitter::address(const Stream& stream, Value* index) {
  llvm::IRBuilderBase& ir = context_.ir;
  if (stream.access == Access::strided) {
    return ir.CreateGEP(ir.getInt8Ty(), stream.row, ir.CreateMul(index, stream.inner_step));
  }
  if (stream.access == Access::lanes) {
    index = ir.CreateAnd(index, ir.getInt64(static_cast<uint64_t>(stream.lanes - 1)));
  }
  return ir.CreateGEP(element_type(context_, stream.type), stream.row, index);
}

Value* StreamEmitter::counted(const Stream& stream, Value* index) {
  llvm::IRBuilderBase& ir = context_.ir;
  Value* const first = ir.CreateAdd(stream.row, ir.CreateMul(index, stream.inner_step));
  return sequence(first, stream.inner_step);
}

Value* StreamEmitter::sequence(Value* first, Value* step) {
  llvm::IRBuilderBase& ir = context_.ir;
  std::vector<uint64_t> numbers(static_cast<std::size_t>(context_.width));
  for (std::size_t lane = 0; lane < numbers.size(); ++lane) numbers[lane] = lane;
  llvm::Constant* const iota = llvm::ConstantDataVector::get(ir.getContext(), numbers);
  return ir.CreateAdd(splat(context_, first), ir.CreateMul(iota, splat(context_, step)));
}

bool StreamEmitter::has_mask(const Stream& stream) const {
  if (stream.access == Access::strided) return false;
  return size_of(stream.type) >= 4 ? context_.target.has_masks : context_.target.has_narrow_masks;
}

Value* StreamEmitter::mask(Value* count) {
  llvm::IRBuilderBase& ir = context_.ir;
  const auto width = static_cast<unsigned>(context_.width);
  llvm::FixedVectorType* const type = llvm::FixedVectorType::get(ir.getInt1Ty(), width);
  if (context_.target.has_narrow_masks && width < 64) {
    // (1 << count) - 1, in a general register.
    Value* const ones = ir.CreateSub(ir.CreateShl(ir.getInt64(1), count), ir.getInt64(1));
    return ir.CreateBitCast(ir.CreateTrunc(ones, ir.getIntNTy(width)), type);
  }
  std::vector<uint32_t> numbers(width);
  for (uint32_t lane = 0; lane < width; ++lane) numbers[lane] = lane;
  return ir.CreateICmpULT(llvm::ConstantDataVector::get(ir.getContext(), numbers),
                          ir.CreateVectorSplat(width, ir.CreateTrunc(count, ir.getInt32Ty())));
}

Value* StreamEmitter::buffer() {
  if (buffer_ != nullptr) return buffer_;
  llvm::IRBuilderBase& ir = context_.ir;
  llvm::BasicBlock& entry = ir.GetInsertBlock()->getParent()->getEntryBlock();
  const llvm::IRBuilderBase::InsertPointGuard guard(ir);
  ir.SetInsertPoint(&entry, entry.begin());
  buffer_ =
      ir.CreateAlloca(llvm::ArrayType::get(ir.getInt64Ty(), static_cast<uint64_t>(context_.width)));
  buffer_->setAlignment(llvm::Align(static_cast<uint64_t>(context_.target.vector_bytes)));
  return buffer_;
}

void StreamEmitter::copy_elements(const Stream& stream, const Chunk& chunk, bool to_buffer) {
  llvm::IRBuilderBase& ir = context_.ir;
  llvm::Type* const element = element_type(context_, stream.type);
  Value* const memory = address(stream, chunk.index);
  Value* const step = step_of(stream);
  for_each(ir, ir.getInt64(0), chunk.count, [&](Value* lane) -> Value* {
    Value* const there = ir.CreateGEP(ir.getInt8Ty(), memory, ir.CreateMul(lane, step));
    Value* const here = ir.CreateGEP(element, buffer(), lane);
    const llvm::Align align = element_align(stream);
    Value* const moved = ir.CreateAlignedLoad(element, to_buffer ? there : here, align);
    ir.CreateAlignedStore(moved, to_buffer ? here : there, align);
    return nullptr;
  });
}

Value* StreamEmitter::load_lanes(const Stream& stream, Value* index) {
  llvm::IRBuilderBase& ir = context_.ir;
  Value* memory = address(stream, index);
  Value* result = llvm::PoisonValue::get(vector_type(context_, stream.type));
  for (int lane = 0; lane < context_.width; ++lane) {
    if (lane > 0) memory = ir.CreateGEP(ir.getInt8Ty(), memory, stream.inner_step);
    Value* const element =
        ir.CreateAlignedLoad(element_type(context_, stream.type), memory, element_align(stream));
    result = ir.CreateInsertElement(result, element, static_cast<uint64_t>(lane));
  }
  return result;
}

void StreamEmitter::store_lanes(const Stream& stream, Value* index, Value* value) {
  llvm::IRBuilderBase& ir = context_.ir;
  Value* memory = address(stream, index);
  for (int lane = 0; lane < context_.width; ++lane) {
    if (lane > 0) memory = ir.CreateGEP(ir.getInt8Ty(), memory, stream.inner_step);
    ir.CreateAlignedStore(ir.CreateExtractElement(value, static_cast<uint64_t>(lane)), memory,
                          element_align(stream));
  }
}

Value* StreamEmitter::load(const Stream& stream, const Chunk& chunk) {
  return as_computed(stream, load_stored(stream, chunk));
}

Value* StreamEmitter::load_stored(const Stream& stream, const Chunk& chunk) {
  llvm::IRBuilderBase& ir = context_.ir;
  if (stream.is_counted) return counted(stream, chunk.index);
  llvm::FixedVectorType* const vector = vector_type(context_, stream.type);
  if (chunk.count == nullptr || stream.access == Access::lanes) {
    if (stream.access == Access::strided) return load_lanes(stream, chunk.index);
    return ir.CreateAlignedLoad(vector, address(stream, chunk.index), element_align(stream));
  }
  if (has_mask(stream)) {
    return ir.CreateMaskedLoad(vector, address(stream, chunk.index), element_align(stream),
                               mask(chunk.count), llvm::Constant::getNullValue(vector));
  }
  const llvm::Align align(vector_alignment(stream));
  ir.CreateAlignedStore(llvm::Constant::getNullValue(vector), buffer(), align);
  copy_elements(stream, chunk, /*to_buffer=*/true);
  return ir.CreateAlignedLoad(vector, buffer(), align);
}

Value* StreamEmitter::moved(const Stream& stream, Value* distances) {
  llvm::IRBuilderBase& ir = context_.ir;
  Value* const bytes = ir.CreateMul(ir.CreateExtractElement(distances, uint64_t{0}),
                                    ir.getInt64(static_cast<uint64_t>(size_of(stream.type))));
  return ir.CreateGEP(ir.getInt8Ty(), stream.row, bytes);
}

/// Padding lanes load what is at the row's start.
Value* StreamEmitter::look_up(const Stream& stream, const Chunk& chunk, Value* distances) {
  llvm::IRBuilderBase& ir = context_.ir;
  llvm::Type* const element = element_type(context_, stream.type);
  Value* const size = ir.getInt64(static_cast<uint64_t>(size_of(stream.type)));
  Value* bytes = ir.CreateMul(distances, splat(context_, size));
  if (stream.access != Access::per_outer) {
    Value* const step = step_of(stream);
    bytes = ir.CreateAdd(bytes, sequence(ir.CreateMul(chunk.index, step), step));
  }
  if (chunk.count != nullptr) {
    bytes =
        ir.CreateSelect(mask(chunk.count), bytes, llvm::Constant::getNullValue(bytes->getType()));
  }
  Value* result = llvm::PoisonValue::get(vector_type(context_, stream.type));
  for (int lane = 0; lane < context_.width; ++lane) {
    Value* const place = ir.CreateGEP(ir.getInt8Ty(), stream.row,
                                      ir.CreateExtractElement(bytes, static_cast<uint64_t>(lane)));
    result =
        ir.CreateInsertElement(result, ir.CreateAlignedLoad(element, place, element_align(stream)),
                               static_cast<uint64_t>(lane));
  }
  return as_computed(stream, result);
}

void StreamEmitter::store(const Stream& stream, const Chunk& chunk, Value* value) {
  llvm::IRBuilderBase& ir = context_.ir;
  if (stream.is_check) return note_failure(stream, chunk, value);
  value = as_stored(stream, value);
  if (stream.access == Access::lanes && chunk.count != nullptr) {
    // A masked store would make the next load wait until it is in the cache.
    value = ir.CreateSelect(mask(chunk.count), value, load(stream, chunk));
  }
  if (chunk.count == nullptr || stream.access == Access::lanes) {
    if (stream.access == Access::strided) return store_lanes(stream, chunk.index, value);
    ir.CreateAlignedStore(value, address(stream, chunk.index), element_align(stream));
    return;
  }
  if (has_mask(stream)) {
    ir.CreateMaskedStore(value, address(stream, chunk.index), element_align(stream),
                         mask(chunk.count));
    return;
  }
  ir.CreateAlignedStore(value, buffer(), llvm::Align(vector_alignment(stream)));
  copy_elements(stream, chunk, /*to_buffer=*/false);
}

void StreamEmitter::begin_check(Stream& stream) {
  stream.is_check = true;
  stream.start = context_.ir.CreateAlloca(context_.ir.getInt8Ty());
  context_.ir.CreateAlignedStore(context_.ir.getInt8(0), stream.start, llvm::Align(1));
}

void StreamEmitter::report_failure(const Stream& stream, uint16_t code, Value* call) {
  if (!stream.is_check) return;
  llvm::IRBuilderBase& ir = context_.ir;
  Value* const failed = ir.CreateAlignedLoad(ir.getInt8Ty(), stream.start, llvm::Align(1));
  when(ir, ir.CreateICmpNE(failed, ir.getInt8(0)), [&] {
    Value* const place =
        ir.CreateGEP(ir.getInt8Ty(), call, ir.getInt64(offsetof(host::StageCall, status)));
    Value* const status = ir.CreateAlignedLoad(ir.getPtrTy(), place, llvm::Align(8));
    ir.CreateAlignedStore(ir.getInt32(code), status, llvm::Align(4))
        ->setAtomic(llvm::AtomicOrdering::Monotonic);
  });
}

void StreamEmitter::note_failure(const Stream& stream, const Chunk& chunk, Value* holds) {
  llvm::IRBuilderBase& ir = context_.ir;
  Value* fails = ir.CreateNot(holds);
  if (chunk.count != nullptr) fails = ir.CreateAnd(fails, mask(chunk.count));
  Value* const any =
      context_.width == 1 ? ir.CreateExtractElement(fails, uint64_t{0}) : ir.CreateOrReduce(fails);
  Value* const before = ir.CreateAlignedLoad(ir.getInt8Ty(), stream.start, llvm::Align(1));
  ir.CreateAlignedStore(ir.CreateOr(before, ir.CreateZExt(any, ir.getInt8Ty())), stream.start,
                        llvm::Align(1));
}

uint64_t StreamEmitter::vector_alignment(const Stream& stream) const {
  return static_cast<uint64_t>(
      std::min(context_.width * size_of(stream.type), context_.target.vector_bytes));
}

void StreamEmitter::store_non_temporal(const Stream& stream, const Chunk& chunk, Value* value) {
  llvm::IRBuilderBase& ir = context_.ir;
  llvm::StoreInst* const store =
      ir.CreateAlignedStore(as_stored(stream, value), address(stream, chunk.index),
                            llvm::Align(vector_alignment(stream)));
  store->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(ir.getContext(), llvm::ConstantAsMetadata::get(ir.getInt32(1))));
}

void StreamEmitter::fence() {
#if defined(__x86_64__)
  context_.ir.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
#else
  context_.ir.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
#endif
}

Value* StreamEmitter::misalignment(const Stream& stream, Value* index) {
  llvm::IRBuilderBase& ir = context_.ir;
  Value* const place = ir.CreateGEP(element_type(context_, stream.type), stream.row, index);
  return ir.CreateAnd(ir.CreatePtrToInt(place, ir.getInt64Ty()),
                      ir.getInt64(vector_alignment(stream) - 1));
}

Value* StreamEmitter::points_to_alignment(std::span<const Stream> outputs, Value* size) {
  llvm::IRBuilderBase& ir = context_.ir;
  for (const Stream& stream : outputs) {
    if (stream.access != Access::unit) continue;
    const uint64_t align = vector_alignment(stream);
    Value* const bytes =
        ir.CreateAnd(ir.CreateSub(ir.getInt64(align), misalignment(stream, ir.getInt64(0))),
                     ir.getInt64(align - 1));
    Value* const points =
        ir.CreateUDiv(bytes, ir.getInt64(static_cast<uint64_t>(size_of(stream.type))));
    return ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, points, size);
  }
  return ir.getInt64(0);
}

Value* StreamEmitter::aligned_after(std::span<const Stream> outputs, Value* index) {
  llvm::IRBuilderBase& ir = context_.ir;
  Value* bits = ir.getInt64(0);
  for (const Stream& stream : outputs) {
    if (stream.access == Access::unit) bits = ir.CreateOr(bits, misalignment(stream, index));
  }
  return ir.CreateICmpEQ(bits, ir.getInt64(0));
}

}  // namespace nitinol::cpu
