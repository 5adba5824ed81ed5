// The loops of a stage.
//
//   for outer                           values that change here are computed once per step
//     [accumulate whole lanes in registers]
//     for inner, a vector at a time     load, program, store; of a long chain a strip at a time,
//                                       piece after piece (pieces.h)
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

#include <span>
#include <vector>

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

/// How a piece of the program looks up elements at the points of `chunk`.
ProgramEmitter::EmitLoad look_up_at(StageEmitter& emitter, const Chunk& chunk) {
  return [&emitter, chunk](uint32_t k, Value* distances) {
    return emitter.streams.look_up(emitter.inputs[k], chunk, distances);
  };
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

/// Those of `inputs` that are loaded for each vector.
void load_either(StageEmitter& emitter, std::span<const uint32_t> inputs, Value* is_full,
                 const Chunk& chunk) {
  if (inputs.empty()) return;
  std::vector<Value*> full(emitter.inputs.size()), part(emitter.inputs.size());
  llvm::BasicBlock *after_full = nullptr, *after_part = nullptr;
  const auto load = [&](std::vector<Value*>& values, const Chunk& from) {
    for (const uint32_t k : inputs) values[k] = emitter.streams.load(emitter.inputs[k], from);
    return emitter.ir.GetInsertBlock();
  };
  either(
      emitter.ir, is_full, [&] { after_full = load(full, {.index = chunk.index}); },
      [&] { after_part = load(part, chunk); });
  for (const uint32_t k : inputs) {
    llvm::PHINode* const joined = emitter.ir.CreatePHI(full[k]->getType(), 2);
    joined->addIncoming(full[k], after_full);
    joined->addIncoming(part[k], after_part);
    emitter.program.set_argument(k, joined);
  }
}

void store_either(StageEmitter& emitter, Value* is_full, const Chunk& chunk, Value* may_bypass) {
  either(
      emitter.ir, is_full, [&] { store_whole(emitter, chunk, may_bypass); },
      [&] { store_all(emitter, chunk); });
}

std::vector<uint32_t> all_inner(const StageEmitter& emitter) {
  std::vector<uint32_t> inputs;
  for (uint32_t k = 0; k < emitter.inputs.size(); ++k) {
    if (emitter.is_inner[k]) inputs.push_back(k);
  }
  return inputs;
}

Value* smaller(StageEmitter& emitter, Value* a, Value* b) {
  return emitter.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
}

/// Where instruction `id` is kept of the vector at point `at` of a strip.
Value* place_between(StageEmitter& emitter, uint32_t id, Value* at) {
  const uint16_t place = emitter.pieces.place_of[id];
  Value* const bytes = emitter.ir.CreateMul(at, emitter.ir.getInt64(emitter.pieces.places[place]));
  return emitter.ir.CreateGEP(emitter.ir.getInt8Ty(), emitter.between[place], bytes);
}

/// Conditions are bytes between pieces.
llvm::FixedVectorType* type_between(StageEmitter& emitter, ScalarType type) {
  return vector_type(emitter.context, type == ScalarType::pred ? ScalarType::u8 : type);
}

void take(StageEmitter& emitter, uint32_t id, Value* at) {
  const ScalarType type = emitter.stage.program.instrs[id].type;
  Value* value = emitter.ir.CreateAlignedLoad(type_between(emitter, type),
                                              place_between(emitter, id, at), llvm::Align(1));
  if (type == ScalarType::pred)
    value = emitter.ir.CreateTrunc(value, vector_type(emitter.context, type));
  emitter.program.set_value(id, value);
}

void keep(StageEmitter& emitter, uint32_t id, Value* at) {
  const ScalarType type = emitter.stage.program.instrs[id].type;
  Value* value = emitter.program.value(id);
  if (type == ScalarType::pred) value = emitter.ir.CreateZExt(value, type_between(emitter, type));
  emitter.ir.CreateAlignedStore(value, place_between(emitter, id, at), llvm::Align(1));
}

/// Piece after piece on the `count` points from `first` on (pieces.h).
void emit_strip(StageEmitter& emitter, Value* first, Value* count, Value* may_bypass) {
  llvm::IRBuilderBase& ir = emitter.ir;
  const std::vector<Piece>& pieces = emitter.pieces.pieces;
  for (uint16_t p = 0; p < pieces.size(); ++p) {
    for_each(ir, ir.getInt64(0), count, [&](Value* at) {
      const Chunk chunk{.index = ir.CreateAdd(first, at),
                        .count = smaller(emitter, ir.CreateSub(count, at), width(emitter))};
      Value* const is_full = ir.CreateICmpEQ(chunk.count, width(emitter));
      load_either(emitter, pieces[p].inputs, is_full, chunk);
      for (const uint32_t id : pieces[p].taken) take(emitter, id, at);
      emitter.program.emit_piece(emitter.pieces, p, look_up_at(emitter, chunk));
      for (const uint32_t id : pieces[p].kept) keep(emitter, id, at);
      if (p + 1U == pieces.size()) store_either(emitter, is_full, chunk, may_bypass);
      return ir.CreateAdd(at, width(emitter));
    });
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
  emitter.program.emit(Depth::inner, look_up_at(emitter, chunk));
}

void shared_loop(StageEmitter& emitter, Value* first, Value* last) {
  llvm::IRBuilderBase& ir = emitter.ir;
  Value *peeled = nullptr, *may_bypass = nullptr;
  if (emitter.stage.non_temporal) {
    peeled = emitter.streams.points_to_alignment(emitter.outputs, last);
    may_bypass = emitter.streams.aligned_after(emitter.outputs, peeled);
  }
  const bool is_whole = emitter.pieces.pieces.size() <= 1;
  const auto most = static_cast<uint64_t>(emitter.context.width * (is_whole ? 1 : strip_vectors));
  for_each(ir, first, last, [&](Value* i) {
    Value* count = smaller(emitter, ir.CreateSub(last, i), ir.getInt64(most));
    if (peeled != nullptr) {
      Value* const is_first = ir.CreateICmpEQ(i, ir.getInt64(0));
      Value* const peels = ir.CreateAnd(is_first, ir.CreateICmpSGT(peeled, ir.getInt64(0)));
      count = ir.CreateSelect(peels, peeled, count);
    }
    if (!is_whole) {
      emit_strip(emitter, i, count, may_bypass);
      return ir.CreateAdd(i, count);
    }
    Value* const is_full = ir.CreateICmpEQ(count, width(emitter));
    const Chunk chunk{.index = i, .count = count};
    load_either(emitter, all_inner(emitter), is_full, chunk);
    emit_inner(emitter, chunk);
    store_either(emitter, is_full, chunk, may_bypass);
    return ir.CreateAdd(i, count);
  });
}

void emit_stage(llvm::Module& module, const Target& target, const Kernel& kernel,
                const Stage& stage, const std::string& name, bool in_pieces) {
  llvm::IRBuilder<llvm::NoFolder> ir(module.getContext());
  StageEmitter emitter(ir, module, target, kernel, stage);
  if (in_pieces) split_program(emitter);
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
