// Lanes (Order::lanes): element i joins lane i % 64. The accumulators are an array of 64, and each
// vector joins its part of it: load, join, store. That is a loop-carried dependency through memory,
// 64 elements long; it is hidden by a long program, while a short one is first unrolled over all
// lanes with the accumulators in registers.

#include "backends/cpu/jit/control_flow.h"
#include "backends/cpu/jit/fold_lanes.h"
#include "backends/cpu/jit/stage_emitter.h"
#include "backends/host/stage.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <ranges>

namespace nitinol::cpu {
namespace {

using host::StageCall;
using llvm::Value;

constexpr int unrolled_program = 96;  ///< instructions of a short program times its copies

llvm::Constant* neutral(const StageEmitter& emitter, const Output& output) {
  const bool is_position = output.place == Place::accumulator_position;
  return splat(emitter.context, output.type,
               is_position ? static_cast<uint64_t>(no_position)
                           : neutral_bits(emitter.kernel.reductions[output.index]));
}

void fill_lanes(StageEmitter& emitter, bool of_runs) {
  for (std::size_t k = 0; k < emitter.outputs.size(); ++k) {
    if (has_runs(emitter, k) != of_runs) continue;
    const auto vectors = static_cast<std::size_t>(emitter.outputs[k].lanes / emitter.context.width);
    for (std::size_t v = 0; v < vectors; ++v) {
      emitter.streams.store(emitter.outputs[k], whole_chunk(emitter, v),
                            neutral(emitter, emitter.stage.outputs[k]));
    }
  }
}

/// The number of lanes if all outputs are reductions that have the same, else 0.
int common_lanes(const StageEmitter& emitter) {
  const int lanes = emitter.outputs.front().lanes;
  const auto same = [&](const Stream& stream) { return stream.lanes == lanes; };
  return std::ranges::all_of(emitter.outputs, same) ? lanes : 0;
}

/// The output that replaces input k, an accumulator.
std::size_t output_of(const StageEmitter& emitter, uint32_t k) {
  const Input& input = emitter.stage.inputs[k];
  const auto same = [&](const Output& output) {
    return output.place == input.place && output.index == input.index;
  };
  return static_cast<std::size_t>(std::ranges::find_if(emitter.stage.outputs, same) -
                                  emitter.stage.outputs.begin());
}

/// A vector of the lanes of an output, while they are in registers.
struct Register {
  std::size_t output, copy;  ///< of the program
  Value* start;
  llvm::PHINode* now = nullptr;
  Value* next = nullptr;
};

std::vector<Register> registers_of(StageEmitter& emitter, std::size_t copies) {
  std::vector<Register> registers;
  for (std::size_t k = 0; k < emitter.outputs.size(); ++k) {
    for (std::size_t copy = 0; copy < copies; ++copy) {
      Value* const start = has_runs(emitter, k) ? neutral(emitter, emitter.stage.outputs[k])
                                                : emitter.streams.load(emitter.outputs[k],
                                                                       whole_chunk(emitter, copy));
      registers.push_back({k, copy, start});
    }
  }
  return registers;
}

/// All copies of the program on the points from `i` on.
void join_registers(StageEmitter& emitter, std::vector<Register>& registers, std::size_t copies,
                    Value* i) {
  for (std::size_t copy = 0; copy < copies; ++copy) {
    const Chunk chunk{.index = emitter.ir.CreateAdd(i, whole_chunk(emitter, copy).index)};
    for (uint32_t k = 0; k < emitter.inputs.size(); ++k) {
      if (!emitter.is_inner[k]) continue;
      const bool is_old = emitter.inputs[k].access == Access::lanes;
      emitter.program.set_argument(k, is_old ? registers[output_of(emitter, k) * copies + copy].now
                                             : emitter.streams.load(emitter.inputs[k], chunk));
    }
    emit_inner(emitter, chunk);
    for (Register& of : registers) {
      if (of.copy == copy) of.next = emitter.program.value(emitter.stage.outputs[of.output].value);
    }
  }
}

/// Visits all whole groups of `lanes` points from `first` on; returns where they end.
Value* accumulate_in_registers(StageEmitter& emitter, Value* first, Value* last, int lanes) {
  llvm::IRBuilderBase& ir = emitter.ir;
  const auto copies = static_cast<std::size_t>(lanes / emitter.context.width);
  Value* const end = whole_groups(emitter, first, last, lanes);
  llvm::BasicBlock* const before = ir.GetInsertBlock();
  llvm::BasicBlock* const loop = new_block(ir, "lanes");
  llvm::BasicBlock* const after = new_block(ir, "rest");
  std::vector<Register> registers = registers_of(emitter, copies);
  ir.CreateCondBr(ir.CreateICmpSGT(end, first), loop, after);
  ir.SetInsertPoint(loop);
  llvm::PHINode* const i = ir.CreatePHI(ir.getInt64Ty(), 2);
  i->addIncoming(first, before);
  for (Register& of : registers) {
    of.now = ir.CreatePHI(of.start->getType(), 2);
    of.now->addIncoming(of.start, before);
  }
  join_registers(emitter, registers, copies, i);
  llvm::BasicBlock* const joined = ir.GetInsertBlock();
  llvm::BasicBlock* const keep = new_block(ir, "keep");
  Value* const next = ir.CreateAdd(i, ir.getInt64(static_cast<uint64_t>(lanes)));
  i->addIncoming(next, joined);
  for (const Register& of : registers) of.now->addIncoming(of.next, joined);
  ir.CreateCondBr(ir.CreateICmpSLT(next, end), loop, keep);
  ir.SetInsertPoint(keep);  // the accumulators go where the rest of the points finds them
  for (const Register& of : registers)
    emitter.streams.store(emitter.outputs[of.output], whole_chunk(emitter, of.copy), of.next);
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
  return end;
}

void accumulate_run(StageEmitter& emitter, Value* first, Value* last) {
  const int lanes = common_lanes(emitter);
  if (lanes > 0 &&
      emitter.program.inner_size() * (lanes / emitter.context.width) <= unrolled_program) {
    first = accumulate_in_registers(emitter, first, last, lanes);
  }
  shared_loop(emitter, first, last);
}

/// The values of row `outer`.
void fold_all_lanes(StageEmitter& emitter, Value* outer) {
  const std::vector<Output>& outputs = emitter.stage.outputs;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k].place != Place::accumulator) continue;
    const Reduction& reduction = emitter.kernel.reductions[outputs[k].index];
    // The position of a value is the output that follows it.
    const Stream* const positions = is_arg(reduction.combine) ? &emitter.outputs[k + 1] : nullptr;
    const Folded folded =
        fold_lanes(emitter.context, emitter.streams, reduction, {emitter.outputs[k], positions},
                   call_field(emitter, offsetof(StageCall, inner_size)));
    store_of_row(emitter, outputs[k], outer, folded.value);
    if (positions != nullptr) store_of_row(emitter, outputs[k + 1], outer, folded.position);
  }
}

}  // namespace

void accumulate_row(StageEmitter& emitter, Value* outer) {
  llvm::IRBuilderBase& ir = emitter.ir;
  Value* const size = call_field(emitter, offsetof(StageCall, inner_size));
  fill_lanes(emitter, false);
  for_each(ir, ir.getInt64(0), size, [&](Value* first) {
    Value* const run = ir.CreateAdd(first, ir.getInt64(uint64_t{reduction_order::lanes_run}));
    Value* const last = ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, run, size);
    fill_lanes(emitter, true);
    accumulate_run(emitter, first, last);
    for (std::size_t k = 0; k < emitter.outputs.size(); ++k) {
      if (!has_runs(emitter, k)) continue;
      join_runs(emitter.context, emitter.streams, {emitter.outputs[k], emitter.runs[k]},
                {.reduction = emitter.kernel.reductions[emitter.stage.outputs[k].index],
                 .is_first = ir.CreateICmpEQ(first, ir.getInt64(0)),
                 .is_last = ir.CreateICmpEQ(last, size)});
    }
    return last;
  });
  fold_all_lanes(emitter, outer);
}

}  // namespace nitinol::cpu
