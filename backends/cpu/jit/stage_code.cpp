// The loops of a stage.
//
//   for outer                           values that change here are computed once per step
//     [accumulate whole lanes in registers]
//     for inner, a vector at a time     load, program, store
//
// Code generation dominates the time to compile, and is proportional to the number of copies of the
// program. So a long program is emitted once: in the last round, when fewer points than lanes are
// left, only its loads and stores take another branch. That costs two predictable branches per
// vector, which a short program (x + y) would feel: it gets a second copy after the loop instead.

#include "backends/cpu/jit/stage_code.h"

#include "backends/cpu/jit/control_flow.h"
#include "backends/cpu/jit/stage_draft.h"
#include "backends/host/stage.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/NoFolder.h>

namespace nitinol::cpu {
namespace {

using host::StageCall;
using llvm::Value;

/// Programs of at most so many instructions are short (see above).
constexpr int short_program = 24;

Value* width(StageDraft& draft) {
  return draft.ir.getInt64(static_cast<uint64_t>(draft.context.width));
}

void load_arguments(StageDraft& draft, Access access) {
  for (uint32_t k = 0; k < draft.inputs.size(); ++k) {
    if (draft.inputs[k].access == access && !draft.stage.inputs[k].is_looked_up)
      draft.program.set_argument(k, draft.streams.load_uniform(draft.inputs[k]));
  }
}

/// The parts of the program outside the inner loop, with what they read.
void emit_uniform(StageDraft& draft, Access access, Depth depth) {
  load_arguments(draft, access);
  draft.program.emit(depth, [&](uint32_t k, Value* distances) {
    Stream stream = draft.inputs[k];
    stream.row = draft.streams.moved(stream, distances);
    return draft.streams.load_uniform(stream);
  });
}

void store_all(StageDraft& draft, const Chunk& chunk) {
  for (std::size_t k = 0; k < draft.outputs.size(); ++k) {
    draft.streams.store(draft.outputs[k], chunk, draft.program.value(draft.stage.outputs[k].value));
  }
}

/// Around the caches, where `may_bypass` is given and holds.
void store_whole(StageDraft& draft, const Chunk& chunk, Value* may_bypass) {
  const Chunk whole{.index = chunk.index};
  if (may_bypass == nullptr) return store_all(draft, whole);
  const auto bypass = [&] {
    for (std::size_t k = 0; k < draft.outputs.size(); ++k) {
      Value* const value = draft.program.value(draft.stage.outputs[k].value);
      if (draft.outputs[k].access != Access::unit)
        draft.streams.store(draft.outputs[k], whole, value);
      else
        draft.streams.store_non_temporal(draft.outputs[k], whole, value);
    }
  };
  either(draft.ir, may_bypass, bypass, [&] { store_all(draft, whole); });
}

void compute(StageDraft& draft, const Chunk& chunk) {
  for (uint32_t k = 0; k < draft.inputs.size(); ++k) {
    if (draft.is_inner[k])
      draft.program.set_argument(k, draft.streams.load(draft.inputs[k], chunk));
  }
  emit_inner(draft, chunk);
}

void single_loop(StageDraft& draft, Value* size) {
  for_each(draft.ir, draft.ir.getInt64(0), size, [&](Value* i) -> Value* {
    compute(draft, {.index = i});
    store_all(draft, {.index = i});
    return nullptr;
  });
}

/// Points [first, last), fewer than lanes, if there are any.
void incomplete_vector(StageDraft& draft, Value* first, Value* last) {
  when(draft.ir, draft.ir.CreateICmpSLT(first, last), [&] {
    const Chunk chunk{.index = first, .count = draft.ir.CreateSub(last, first)};
    compute(draft, chunk);
    store_all(draft, chunk);
  });
}

/// What comes before the first output is aligned, if stores go around the caches; the whole
/// vectors; and the tail.
void loop_and_tail(StageDraft& draft, Value* size) {
  Value* first = draft.ir.getInt64(0);
  Value* may_bypass = nullptr;
  if (draft.stage.non_temporal) {
    Value* const peeled = draft.streams.points_to_alignment(draft.outputs, size);
    may_bypass = draft.streams.aligned_after(draft.outputs, peeled);
    incomplete_vector(draft, first, peeled);
    first = peeled;
  }
  Value* const whole = whole_groups(draft, first, size, draft.context.width);
  for_each(draft.ir, first, whole, [&](Value* i) {
    compute(draft, {.index = i});
    store_whole(draft, {.index = i}, may_bypass);
    return draft.ir.CreateAdd(i, width(draft));
  });
  incomplete_vector(draft, whole, size);
}

void load_either(StageDraft& draft, Value* is_full, const Chunk& chunk) {
  std::vector<Value*> full(draft.inputs.size()), part(draft.inputs.size());
  llvm::BasicBlock *after_full = nullptr, *after_part = nullptr;
  const auto load = [&](std::vector<Value*>& values, const Chunk& from) {
    for (uint32_t k = 0; k < draft.inputs.size(); ++k) {
      if (draft.is_inner[k]) values[k] = draft.streams.load(draft.inputs[k], from);
    }
    return draft.ir.GetInsertBlock();
  };
  either(
      draft.ir, is_full, [&] { after_full = load(full, {.index = chunk.index}); },
      [&] { after_part = load(part, chunk); });
  for (uint32_t k = 0; k < draft.inputs.size(); ++k) {
    if (!draft.is_inner[k]) continue;
    llvm::PHINode* const joined = draft.ir.CreatePHI(full[k]->getType(), 2);
    joined->addIncoming(full[k], after_full);
    joined->addIncoming(part[k], after_part);
    draft.program.set_argument(k, joined);
  }
}

void emit_row(StageDraft& draft) {
  Value* const size = call_field(draft, offsetof(StageCall, inner_size));
  if (draft.context.width == 1) return single_loop(draft, size);
  if (draft.program.inner_size() <= short_program) return loop_and_tail(draft, size);
  shared_loop(draft, draft.ir.getInt64(0), size);
}

}  // namespace

Chunk whole_chunk(StageDraft& draft, std::size_t number) {
  return {.index = draft.ir.getInt64(number * static_cast<uint64_t>(draft.context.width))};
}

Value* whole_groups(StageDraft& draft, Value* first, Value* last, int count) {
  Value* const mask = draft.ir.getInt64(static_cast<uint64_t>(-int64_t{count}));
  Value* const size = draft.ir.CreateSub(last, first);
  return draft.ir.CreateAdd(first, draft.ir.CreateAnd(size, mask));
}

void emit_inner(StageDraft& draft, const Chunk& chunk) {
  draft.program.emit(Depth::inner, [&](uint32_t k, Value* distances) {
    return draft.streams.look_up(draft.inputs[k], chunk, distances);
  });
}

void shared_loop(StageDraft& draft, Value* first, Value* last) {
  llvm::IRBuilderBase& ir = draft.ir;
  Value *peeled = nullptr, *may_bypass = nullptr;
  if (draft.stage.non_temporal) {
    peeled = draft.streams.points_to_alignment(draft.outputs, last);
    may_bypass = draft.streams.aligned_after(draft.outputs, peeled);
  }
  for_each(ir, first, last, [&](Value* i) {
    Value* count =
        ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.CreateSub(last, i), width(draft));
    if (peeled != nullptr) {
      Value* const is_first = ir.CreateICmpEQ(i, ir.getInt64(0));
      Value* const peels = ir.CreateAnd(is_first, ir.CreateICmpSGT(peeled, ir.getInt64(0)));
      count = ir.CreateSelect(peels, peeled, count);
    }
    Value* const is_full = ir.CreateICmpEQ(count, width(draft));
    const Chunk chunk{.index = i, .count = count};
    load_either(draft, is_full, chunk);
    emit_inner(draft, chunk);
    either(
        ir, is_full, [&] { store_whole(draft, chunk, may_bypass); },
        [&] { store_all(draft, chunk); });
    return ir.CreateAdd(i, count);
  });
}

void emit_stage(llvm::Module& module, const Target& target, const Kernel& kernel,
                const Stage& stage, const std::string& name) {
  llvm::IRBuilder<llvm::NoFolder> ir(module.getContext());
  StageDraft draft(ir, module, target, kernel, stage);
  begin_function(draft, name);
  make_streams(draft);
  emit_uniform(draft, Access::per_call, Depth::call);
  Value* const rows = call_field(draft, offsetof(StageCall, outer_size));
  // Without an outer loop there is no other use of the row: one pass, or none.
  for_each(draft.ir, draft.ir.getInt64(0), rows, [&](Value* outer) -> Value* {
    for (Stream& stream : draft.inputs) stream.row = draft.streams.row_of(stream, outer);
    for (Stream& stream : draft.outputs) stream.row = draft.streams.row_of(stream, outer);
    emit_uniform(draft, Access::per_outer, Depth::outer);
    for (const auto& [k, distance] : draft.program.loads_by_row())
      draft.inputs[k].row = draft.streams.moved(draft.inputs[k], draft.program.value(distance));
    draft.stage.has_lanes ? accumulate_row(draft, outer) : emit_row(draft);
    return nullptr;
  });
  if (draft.stage.non_temporal) draft.streams.fence();
  for (std::size_t k = 0; k < draft.outputs.size(); ++k)
    draft.streams.report_failure(draft.outputs[k], draft.stage.outputs[k].index, draft.call);
  draft.ir.CreateRetVoid();
}

}  // namespace nitinol::cpu
