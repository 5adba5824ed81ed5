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
#include "backends/cpu/jit/stage_emitter.h"
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

Value* width(StageEmitter& emitter) {
  return emitter.ir.getInt64(static_cast<uint64_t>(emitter.context.width));
}

void load_arguments(StageEmitter& emitter, Access access) {
  for (uint32_t k = 0; k < emitter.inputs.size(); ++k) {
    if (emitter.inputs[k].access == access && !emitter.stage.inputs[k].is_looked_up)
      emitter.program.set_argument(k, emitter.streams.load_uniform(emitter.inputs[k]));
  }
}

/// The parts of the program outside the inner loop, with what they read.
void emit_uniform(StageEmitter& emitter, Access access, Depth depth) {
  load_arguments(emitter, access);
  emitter.program.emit(depth, [&](uint32_t k, Value* distances) {
    Stream stream = emitter.inputs[k];
    stream.row = emitter.streams.moved(stream, distances);
    return emitter.streams.load_uniform(stream);
  });
}

void store_all(StageEmitter& emitter, const Chunk& chunk) {
  for (std::size_t k = 0; k < emitter.outputs.size(); ++k) {
    emitter.streams.store(emitter.outputs[k], chunk,
                          emitter.program.value(emitter.stage.outputs[k].value));
  }
}

/// Around the caches, where `may_bypass` is given and holds.
void store_whole(StageEmitter& emitter, const Chunk& chunk, Value* may_bypass) {
  const Chunk whole{.index = chunk.index};
  if (may_bypass == nullptr) return store_all(emitter, whole);
  const auto bypass = [&] {
    for (std::size_t k = 0; k < emitter.outputs.size(); ++k) {
      Value* const value = emitter.program.value(emitter.stage.outputs[k].value);
      if (emitter.outputs[k].access != Access::unit)
        emitter.streams.store(emitter.outputs[k], whole, value);
      else
        emitter.streams.store_non_temporal(emitter.outputs[k], whole, value);
    }
  };
  either(emitter.ir, may_bypass, bypass, [&] { store_all(emitter, whole); });
}

void compute(StageEmitter& emitter, const Chunk& chunk) {
  for (uint32_t k = 0; k < emitter.inputs.size(); ++k) {
    if (emitter.is_inner[k])
      emitter.program.set_argument(k, emitter.streams.load(emitter.inputs[k], chunk));
  }
  emit_inner(emitter, chunk);
}

void single_loop(StageEmitter& emitter, Value* size) {
  for_each(emitter.ir, emitter.ir.getInt64(0), size, [&](Value* i) -> Value* {
    compute(emitter, {.index = i});
    store_all(emitter, {.index = i});
    return nullptr;
  });
}

/// Points [first, last), fewer than lanes, if there are any.
void incomplete_vector(StageEmitter& emitter, Value* first, Value* last) {
  when(emitter.ir, emitter.ir.CreateICmpSLT(first, last), [&] {
    const Chunk chunk{.index = first, .count = emitter.ir.CreateSub(last, first)};
    compute(emitter, chunk);
    store_all(emitter, chunk);
  });
}

/// What comes before the first output is aligned, if stores go around the caches; the whole
/// vectors; and the tail.
void loop_and_tail(StageEmitter& emitter, Value* size) {
  Value* first = emitter.ir.getInt64(0);
  Value* may_bypass = nullptr;
  if (emitter.stage.non_temporal) {
    Value* const peeled = emitter.streams.points_to_alignment(emitter.outputs, size);
    may_bypass = emitter.streams.aligned_after(emitter.outputs, peeled);
    incomplete_vector(emitter, first, peeled);
    first = peeled;
  }
  Value* const whole = whole_groups(emitter, first, size, emitter.context.width);
  for_each(emitter.ir, first, whole, [&](Value* i) {
    compute(emitter, {.index = i});
    store_whole(emitter, {.index = i}, may_bypass);
    return emitter.ir.CreateAdd(i, width(emitter));
  });
  incomplete_vector(emitter, whole, size);
}

void load_either(StageEmitter& emitter, Value* is_full, const Chunk& chunk) {
  std::vector<Value*> full(emitter.inputs.size()), part(emitter.inputs.size());
  llvm::BasicBlock *after_full = nullptr, *after_part = nullptr;
  const auto load = [&](std::vector<Value*>& values, const Chunk& from) {
    for (uint32_t k = 0; k < emitter.inputs.size(); ++k) {
      if (emitter.is_inner[k]) values[k] = emitter.streams.load(emitter.inputs[k], from);
    }
    return emitter.ir.GetInsertBlock();
  };
  either(
      emitter.ir, is_full, [&] { after_full = load(full, {.index = chunk.index}); },
      [&] { after_part = load(part, chunk); });
  for (uint32_t k = 0; k < emitter.inputs.size(); ++k) {
    if (!emitter.is_inner[k]) continue;
    llvm::PHINode* const joined = emitter.ir.CreatePHI(full[k]->getType(), 2);
    joined->addIncoming(full[k], after_full);
    joined->addIncoming(part[k], after_part);
    emitter.program.set_argument(k, joined);
  }
}

void emit_row(StageEmitter& emitter) {
  Value* const size = call_field(emitter, offsetof(StageCall, inner_size));
  if (emitter.context.width == 1) return single_loop(emitter, size);
  if (emitter.program.inner_size() <= short_program) return loop_and_tail(emitter, size);
  shared_loop(emitter, emitter.ir.getInt64(0), size);
}

}  // namespace

Chunk whole_chunk(StageEmitter& emitter, std::size_t number) {
  return {.index = emitter.ir.getInt64(number * static_cast<uint64_t>(emitter.context.width))};
}

Value* whole_groups(StageEmitter& emitter, Value* first, Value* last, int count) {
  Value* const mask = emitter.ir.getInt64(static_cast<uint64_t>(-int64_t{count}));
  Value* const size = emitter.ir.CreateSub(last, first);
  return emitter.ir.CreateAdd(first, emitter.ir.CreateAnd(size, mask));
}

void emit_inner(StageEmitter& emitter, const Chunk& chunk) {
  emitter.program.emit(Depth::inner, [&](uint32_t k, Value* distances) {
    return emitter.streams.look_up(emitter.inputs[k], chunk, distances);
  });
}

void shared_loop(StageEmitter& emitter, Value* first, Value* last) {
  llvm::IRBuilderBase& ir = emitter.ir;
  Value *peeled = nullptr, *may_bypass = nullptr;
  if (emitter.stage.non_temporal) {
    peeled = emitter.streams.points_to_alignment(emitter.outputs, last);
    may_bypass = emitter.streams.aligned_after(emitter.outputs, peeled);
  }
  for_each(ir, first, last, [&](Value* i) {
    Value* count =
        ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir.CreateSub(last, i), width(emitter));
    if (peeled != nullptr) {
      Value* const is_first = ir.CreateICmpEQ(i, ir.getInt64(0));
      Value* const peels = ir.CreateAnd(is_first, ir.CreateICmpSGT(peeled, ir.getInt64(0)));
      count = ir.CreateSelect(peels, peeled, count);
    }
    Value* const is_full = ir.CreateICmpEQ(count, width(emitter));
    const Chunk chunk{.index = i, .count = count};
    load_either(emitter, is_full, chunk);
    emit_inner(emitter, chunk);
    either(
        ir, is_full, [&] { store_whole(emitter, chunk, may_bypass); },
        [&] { store_all(emitter, chunk); });
    return ir.CreateAdd(i, count);
  });
}

void emit_stage(llvm::Module& module, const Target& target, const Kernel& kernel,
                const Stage& stage, const std::string& name) {
  llvm::IRBuilder<llvm::NoFolder> ir(module.getContext());
  StageEmitter emitter(ir, module, target, kernel, stage);
  begin_function(emitter, name);
  make_streams(emitter);
  emit_uniform(emitter, Access::per_call, Depth::call);
  Value* const rows = call_field(emitter, offsetof(StageCall, outer_size));
  // Without an outer loop there is no other use of the row: one pass, or none.
  for_each(emitter.ir, emitter.ir.getInt64(0), rows, [&](Value* outer) -> Value* {
    for (Stream& stream : emitter.inputs) stream.row = emitter.streams.row_of(stream, outer);
    for (Stream& stream : emitter.outputs) stream.row = emitter.streams.row_of(stream, outer);
    emit_uniform(emitter, Access::per_outer, Depth::outer);
    for (const auto& [k, distance] : emitter.program.loads_by_row())
      emitter.inputs[k].row =
          emitter.streams.moved(emitter.inputs[k], emitter.program.value(distance));
    emitter.stage.has_lanes ? accumulate_row(emitter, outer) : emit_row(emitter);
    return nullptr;
  });
  if (emitter.stage.non_temporal) emitter.streams.fence();
  for (std::size_t k = 0; k < emitter.outputs.size(); ++k)
    emitter.streams.report_failure(emitter.outputs[k], emitter.stage.outputs[k].index,
                                   emitter.call);
  emitter.ir.CreateRetVoid();
}

}  // namespace nitinol::cpu
