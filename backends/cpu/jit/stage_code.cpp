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
//
// Lanes (Order::lanes): element i joins lane i % 64. The accumulators are an array of 64, and each
// vector joins its part of it: load, join, store. That is a loop-carried dependency through memory,
// 64 elements long; it is hidden by a long program, while a short one is first unrolled over all
// lanes with the accumulators in registers.

#include "backends/cpu/jit/stage_code.h"

#include "backends/cpu/jit/control_flow.h"
#include "backends/cpu/jit/fold_lanes.h"
#include "backends/cpu/jit/lower.h"
#include "backends/cpu/jit/program.h"
#include "backends/cpu/jit/streams.h"
#include "backends/host/stage.h"
#include "core/kernel.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/NoFolder.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace nitinol::cpu {
namespace {

using host::StageCall;
using llvm::Value;

/// Programs of at most so many instructions are short (see above).
constexpr int short_program = 24;
constexpr int unrolled_program = 96;  ///< times the copies that fill all lanes

class StageEmitter {
 public:
  StageEmitter(llvm::Module& module, const Target& target, const Kernel& kernel, const Stage& stage)
      : kernel_(kernel),
        stage_(lower(kernel, stage, target)),
        ir_(module.getContext()),
        context_{ir_, module, target, vector_width(stage_, kernel, target.vector_bytes)},
        streams_(context_),
        program_(context_, stage_.program, depths(),
                 [this](uint32_t k, Value* distances) { return look_up(k, distances); }) {}

  void emit(const std::string& name) {
    begin_function(name);
    make_streams();
    load_arguments(Access::per_call);
    program_.emit(Depth::call);
    Value* const zero = ir_.getInt64(0);
    // Without an outer loop there is no other use of the row: one pass, or none.
    for_each(ir_, zero, call_field(offsetof(StageCall, outer_size)), [&](Value* outer) -> Value* {
      for (Stream& stream : inputs_) stream.row = streams_.row_of(stream, outer);
      for (Stream& stream : outputs_) stream.row = streams_.row_of(stream, outer);
      load_arguments(Access::per_outer);
      program_.emit(Depth::outer);
      for (const auto& [k, distance] : program_.loads_by_row())
        inputs_[k].row = streams_.moved(inputs_[k], program_.value(distance));
      if (stage_.has_lanes)
        accumulate_row(outer);
      else
        emit_row();
      return nullptr;
    });
    if (stage_.non_temporal) streams_.fence();
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      streams_.report_failure(outputs_[k], stage_.outputs[k].index, call_);
    ir_.CreateRetVoid();
  }

 private:
  // ---- the function and its arguments --------------------------------------------------------

  std::vector<Depth> depths() const {
    std::vector<Depth> depths;
    for (const Input& input : stage_.inputs) {
      depths.push_back(input.access == Access::per_call    ? Depth::call
                       : input.access == Access::per_outer ? Depth::outer
                                                           : Depth::inner);
    }
    return depths;
  }

  void begin_function(const std::string& name) {
    llvm::Type* const pointer = ir_.getPtrTy();
    auto* const type = llvm::FunctionType::get(ir_.getVoidTy(), {pointer, pointer}, false);
    auto* const function =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, context_.module);
    function->setDoesNotThrow();
    call_ = function->getArg(1);
    ir_.SetInsertPoint(llvm::BasicBlock::Create(ir_.getContext(), "entry", function));
  }

  Value* load_at(Value* base, uint64_t bytes, llvm::Type* type) {
    Value* const place = ir_.CreateGEP(ir_.getInt8Ty(), base, ir_.getInt64(bytes));
    return ir_.CreateAlignedLoad(type, place, llvm::Align(8));
  }
  /// An 8-byte integer field of the StageCall.
  Value* call_field(std::size_t offset) { return load_at(call_, offset, ir_.getInt64Ty()); }
  /// Entry `index` of an array that a field of the StageCall points to.
  Value* array_entry(std::size_t offset, uint16_t index, llvm::Type* type) {
    return load_at(load_at(call_, offset, ir_.getPtrTy()), uint64_t{index} * 8, type);
  }

  Value* outer_step(uint16_t operand) {
    return array_entry(offsetof(StageCall, outer), operand, ir_.getInt64Ty());
  }
  Value* inner_step(uint16_t operand) {
    return array_entry(offsetof(StageCall, inner), operand, ir_.getInt64Ty());
  }

  Value* element_bytes(ScalarType type) {
    return ir_.getInt64(static_cast<uint64_t>(size_of(type)));
  }

  /// Where a StageCall has the arrays over rows.
  static std::size_t array_of(Place place) {
    switch (place) {
      case Place::result:
        return offsetof(StageCall, results);
      case Place::row_value:
        return offsetof(StageCall, row_values);
      case Place::accumulator_position:
        return offsetof(StageCall, accumulator_positions);
      default:
        return offsetof(StageCall, accumulators);
    }
  }

  /// The lanes of one row: an array on the stack, the same for the input and the output.
  template <class InputOrOutput>
  Value* lanes_of_row(const InputOrOutput& io) {
    llvm::Value*& lanes = lanes_[{io.place, io.index}];
    if (lanes == nullptr) lanes = new_lanes(io);
    return lanes;
  }

  template <class InputOrOutput>
  Value* new_lanes(const InputOrOutput& io) {
    const auto count = static_cast<uint64_t>(lanes_of(kernel_.reductions[io.index].type));
    llvm::AllocaInst* const array =
        ir_.CreateAlloca(llvm::ArrayType::get(element_type(context_, io.type), count));
    array->setAlignment(llvm::Align(64));
    return array;
  }

  template <class InputOrOutput>
  Stream make_stream(const InputOrOutput& io) {
    Stream stream{.access = io.access, .type = io.type, .is_half = io.is_half};
    llvm::Type* const pointer = ir_.getPtrTy();
    switch (io.place) {
      case Place::operand:
        stream.start = array_entry(offsetof(StageCall, pointers), io.index, pointer);
        break;
      case Place::scalar: {
        Value* const scalars = load_at(call_, offsetof(StageCall, scalars), pointer);
        stream.start =
            ir_.CreateGEP(ir_.getInt8Ty(), scalars, ir_.getInt64(uint64_t{io.index} * 8));
        break;
      }
      case Place::position:
        stream.is_counted = true;
        stream.start = array_entry(offsetof(StageCall, pointers), io.index, ir_.getInt64Ty());
        break;
      case Place::result:
      case Place::row_value:
      case Place::accumulator:
      case Place::accumulator_position:
        stream.start = io.access == Access::lanes
                           ? lanes_of_row(io)
                           : array_entry(array_of(io.place), io.index, pointer);
        if (io.access == Access::per_outer) stream.outer_step = element_bytes(io.type);
        break;
      case Place::status:
        streams_.begin_check(stream);
        break;
      case Place::element_index:
        stream.is_counted = true;
        stream.start = call_field(offsetof(StageCall, position));
        break;
    }
    if (io.place == Place::operand || io.place == Place::position) {
      stream.outer_step = outer_step(io.index);
      if (io.access == Access::strided) stream.inner_step = inner_step(io.index);
    }
    if (io.place == Place::element_index) {
      (io.access == Access::strided ? stream.inner_step : stream.outer_step) = ir_.getInt64(1);
    }
    if (io.access == Access::lanes) stream.lanes = lanes_of(kernel_.reductions[io.index].type);
    stream.row = stream.start;
    return stream;
  }

  void make_streams() {
    for (const Input& input : stage_.inputs) inputs_.push_back(make_stream(input));
    find_inner_inputs();
    for (const Output& output : stage_.outputs) outputs_.push_back(make_stream(output));
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      const bool accumulates = stage_.has_lanes && has_runs(k);
      runs_.push_back(accumulates ? new_lanes(stage_.outputs[k]) : nullptr);
    }
  }

  void load_arguments(Access access) {
    for (uint32_t k = 0; k < inputs_.size(); ++k) {
      if (inputs_[k].access == access && !stage_.inputs[k].is_looked_up) {
        program_.set_argument(k, streams_.load_uniform(inputs_[k]));
      }
    }
  }

  /// Whether vectors of input k are loaded before the program runs on them.
  bool is_inner(uint32_t k) const { return is_inner_[k]; }

  void find_inner_inputs() {
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      const Access access = inputs_[k].access;
      is_inner_.push_back(!stage_.inputs[k].is_looked_up && access != Access::per_call &&
                          access != Access::per_outer);
    }
    for (const auto& [k, distance] : program_.loads_by_row()) is_inner_[k] = true;
  }

  /// Elements that lie `distances` from the present points of input k.
  Value* look_up(uint32_t k, Value* distances) {
    if (chunk_.index != nullptr) return streams_.look_up(inputs_[k], chunk_, distances);
    Stream stream = inputs_[k];
    stream.row = streams_.moved(stream, distances);
    return streams_.load_uniform(stream);
  }

  /// The program's inner part on the points of `chunk`.
  void emit_inner(const Chunk& chunk) {
    chunk_ = chunk;
    program_.emit(Depth::inner);
    chunk_ = {};
  }

  // ---- loops -----------------------------------------------------------------------------------
  void emit_row() {
    Value* const size = call_field(offsetof(StageCall, inner_size));
    Value* const first = ir_.getInt64(0);
    const int length = program_.inner_size();
    if (context_.width == 1) return single_loop(size);
    if (length > short_program) return shared_loop(first, size);
    stage_.non_temporal ? loop_around_caches(size) : loop_and_tail(size);
  }

  Value* width() { return ir_.getInt64(static_cast<uint64_t>(context_.width)); }

  void compute(const Chunk& chunk) {
    for (uint32_t k = 0; k < inputs_.size(); ++k) {
      if (is_inner(k)) program_.set_argument(k, streams_.load(inputs_[k], chunk));
    }
    emit_inner(chunk);
  }

  void emit_chunk(const Chunk& chunk) {
    compute(chunk);
    store_all(chunk);
  }

  void store_all(const Chunk& chunk) {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      streams_.store(outputs_[k], chunk, program_.value(stage_.outputs[k].value));
    }
  }

  void single_loop(Value* size) {
    for_each(ir_, ir_.getInt64(0), size, [&](Value* i) -> Value* {
      emit_chunk({.index = i});
      return nullptr;
    });
  }

  void loop_and_tail(Value* size) {
    Value* const whole = whole_vectors(ir_.getInt64(0), size);
    for_each(ir_, ir_.getInt64(0), whole, [&](Value* i) {
      emit_chunk({.index = i});
      return ir_.CreateAdd(i, width());
    });
    incomplete_vector(whole, size);
  }

  /// The same between what comes before the first output is aligned and the tail.
  void loop_around_caches(Value* size) {
    Value* const peeled = streams_.points_to_alignment(outputs_, size);
    Value* const may_bypass = streams_.aligned_after(outputs_, peeled);
    incomplete_vector(ir_.getInt64(0), peeled);
    Value* const whole = whole_vectors(peeled, size);
    for_each(ir_, peeled, whole, [&](Value* i) {
      const Chunk chunk{.index = i};
      compute(chunk);
      store_whole(chunk, may_bypass);
      return ir_.CreateAdd(i, width());
    });
    incomplete_vector(whole, size);
  }

  /// Where the last whole vector from `first` on ends.
  Value* whole_vectors(Value* first, Value* size) {
    Value* const mask = ir_.getInt64(static_cast<uint64_t>(-int64_t{context_.width}));
    return ir_.CreateAdd(first, ir_.CreateAnd(ir_.CreateSub(size, first), mask));
  }

  /// Points [first, last), fewer than lanes, if there are any.
  void incomplete_vector(Value* first, Value* last) {
    when(ir_, ir_.CreateICmpSLT(first, last),
         [&] { emit_chunk({.index = first, .count = ir_.CreateSub(last, first)}); });
  }

  void load_either(Value* is_full, const Chunk& chunk) {
    std::vector<Value*> full(inputs_.size()), part(inputs_.size());
    llvm::BasicBlock *after_full = nullptr, *after_part = nullptr;
    const auto load = [&](std::vector<Value*>& values, const Chunk& from) {
      for (uint32_t k = 0; k < inputs_.size(); ++k) {
        if (is_inner(k)) values[k] = streams_.load(inputs_[k], from);
      }
      return ir_.GetInsertBlock();
    };
    either(
        ir_, is_full, [&] { after_full = load(full, {.index = chunk.index}); },
        [&] { after_part = load(part, chunk); });
    for (uint32_t k = 0; k < inputs_.size(); ++k) {
      if (!is_inner(k)) continue;
      llvm::PHINode* const joined = ir_.CreatePHI(full[k]->getType(), 2);
      joined->addIncoming(full[k], after_full);
      joined->addIncoming(part[k], after_part);
      program_.set_argument(k, joined);
    }
  }

  /// One copy of the program for whole and incomplete vectors.
  void shared_loop(Value* first, Value* size) {
    Value* const peeled =
        stage_.non_temporal ? streams_.points_to_alignment(outputs_, size) : nullptr;
    Value* const may_bypass =
        peeled == nullptr ? nullptr : streams_.aligned_after(outputs_, peeled);
    for_each(ir_, first, size, [&](Value* i) {
      Value* count =
          ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateSub(size, i), width());
      if (peeled != nullptr) {
        Value* const is_first = ir_.CreateICmpEQ(i, ir_.getInt64(0));
        Value* const peels = ir_.CreateAnd(is_first, ir_.CreateICmpSGT(peeled, ir_.getInt64(0)));
        count = ir_.CreateSelect(peels, peeled, count);
      }
      Value* const is_full = ir_.CreateICmpEQ(count, width());
      const Chunk chunk{.index = i, .count = count};
      load_either(is_full, chunk);
      emit_inner(chunk);
      either(
          ir_, is_full, [&] { store_whole(chunk, may_bypass); }, [&] { store_all(chunk); });
      return ir_.CreateAdd(i, count);
    });
  }

  // ---- stores around the caches ----------------------------------------------------------------

  void store_whole(const Chunk& chunk, Value* may_bypass) {
    const Chunk whole{.index = chunk.index};
    if (may_bypass == nullptr) return store_all(whole);
    either(
        ir_, may_bypass,
        [&] {
          for (std::size_t k = 0; k < outputs_.size(); ++k) {
            Value* const value = program_.value(stage_.outputs[k].value);
            if (outputs_[k].access != Access::unit)
              streams_.store(outputs_[k], whole, value);
            else
              streams_.store_non_temporal(outputs_[k], whole, value);
          }
        },
        [&] { store_all(whole); });
  }

  // ---- lanes -----------------------------------------------------------------------------------

  /// The number of lanes if all outputs are reductions that have the same, else 0.
  int common_lanes() const {
    const int lanes = outputs_.front().lanes;
    const auto same = [&](const Stream& stream) { return stream.lanes == lanes; };
    return std::ranges::all_of(outputs_, same) ? lanes : 0;
  }

  llvm::Constant* neutral(const Output& output) {
    const bool is_position = output.place == Place::accumulator_position;
    return splat(context_, output.type,
                 is_position ? static_cast<uint64_t>(no_position)
                             : neutral_bits(kernel_.reductions[output.index]));
  }

  /// One of the outputs whose lanes start anew in each run.
  bool has_runs(std::size_t k) const {
    return stage_.outputs[k].place == Place::accumulator &&
           depends_on_order(kernel_.reductions[stage_.outputs[k].index]);
  }

  void accumulate_row(Value* outer) {
    Value* const size = call_field(offsetof(StageCall, inner_size));
    fill_lanes([this](std::size_t k) { return !has_runs(k); });
    for_each(ir_, ir_.getInt64(0), size, [&](Value* first) {
      Value* const last = ir_.CreateBinaryIntrinsic(
          llvm::Intrinsic::smin,
          ir_.CreateAdd(first, ir_.getInt64(uint64_t{reduction_order::lanes_run})), size);
      fill_lanes([this](std::size_t k) { return has_runs(k); });
      accumulate_run(first, last);
      for (std::size_t k = 0; k < outputs_.size(); ++k) {
        if (!has_runs(k)) continue;
        join_runs(context_, streams_, {outputs_[k], runs_[k]},
                  {.reduction = kernel_.reductions[stage_.outputs[k].index],
                   .is_first = ir_.CreateICmpEQ(first, ir_.getInt64(0)),
                   .is_last = ir_.CreateICmpEQ(last, size)});
      }
      return last;
    });
    fold_all_lanes(outer);
  }

  void accumulate_run(Value* first, Value* last) {
    const int lanes = common_lanes();
    if (lanes > 0 && program_.inner_size() * (lanes / context_.width) <= unrolled_program) {
      first = accumulate_in_registers(first, last, lanes);
    }
    shared_loop(first, last);
  }

  template <class Wanted>
  void fill_lanes(Wanted is_wanted) {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (!is_wanted(k)) continue;
      for (int lane = 0; lane < outputs_[k].lanes; lane += context_.width) {
        streams_.store(outputs_[k], {.index = ir_.getInt64(static_cast<uint64_t>(lane))},
                       neutral(stage_.outputs[k]));
      }
    }
  }

  /// The values of row `outer`.
  void fold_all_lanes(Value* outer) {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (stage_.outputs[k].place != Place::accumulator) continue;
      const Reduction& reduction = kernel_.reductions[stage_.outputs[k].index];
      // The position of a value is the output that follows it.
      const Stream* const positions = is_arg(reduction.combine) ? &outputs_[k + 1] : nullptr;
      const Folded folded = fold_lanes(context_, streams_, reduction, {outputs_[k], positions},
                                       call_field(offsetof(StageCall, inner_size)));
      store_of_row(stage_.outputs[k], outer, folded.value);
      if (positions != nullptr) store_of_row(stage_.outputs[k + 1], outer, folded.position);
    }
  }

  void store_of_row(const Output& output, Value* row, Value* element) {
    Value* const array = array_entry(array_of(output.place), output.index, ir_.getPtrTy());
    ir_.CreateAlignedStore(element, ir_.CreateGEP(element->getType(), array, row),
                           llvm::Align(static_cast<uint64_t>(size_of(output.type))));
  }

  /// The output that replaces input k, an accumulator.
  std::size_t output_of(uint32_t k) const {
    const Input& input = stage_.inputs[k];
    const auto same = [&](const Output& output) {
      return output.place == input.place && output.index == input.index;
    };
    return static_cast<std::size_t>(std::ranges::find_if(stage_.outputs, same) -
                                    stage_.outputs.begin());
  }

  /// Visits all whole groups of `lanes` points from `first` on; returns where they end.
  Value* accumulate_in_registers(Value* first, Value* last, int lanes) {
    const auto copies = static_cast<std::size_t>(lanes / context_.width);
    Value* const size = ir_.CreateSub(last, first);
    Value* const whole = ir_.CreateAdd(
        first, ir_.CreateAnd(size, ir_.getInt64(static_cast<uint64_t>(-int64_t{lanes}))));
    llvm::BasicBlock* const before = ir_.GetInsertBlock();
    llvm::BasicBlock* const loop = new_block(ir_, "lanes");
    llvm::BasicBlock* const after = new_block(ir_, "rest");
    std::vector<std::vector<Value*>> start(outputs_.size());
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      for (std::size_t copy = 0; copy < copies; ++copy) {
        start[k].push_back(has_runs(k) ? neutral(stage_.outputs[k])
                                       : streams_.load(outputs_[k], lanes_of_copy(copy)));
      }
    }
    ir_.CreateCondBr(ir_.CreateICmpSGT(whole, first), loop, after);
    ir_.SetInsertPoint(loop);
    llvm::PHINode* const i = ir_.CreatePHI(ir_.getInt64Ty(), 2);
    i->addIncoming(first, before);
    std::vector<std::vector<llvm::PHINode*>> registers(outputs_.size());
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      for (Value* const value : start[k]) {
        registers[k].push_back(ir_.CreatePHI(value->getType(), 2));
        registers[k].back()->addIncoming(value, before);
      }
    }
    std::vector<std::vector<Value*>> joined(outputs_.size());
    for (std::size_t copy = 0; copy < copies; ++copy) {
      Value* const offset = ir_.getInt64(copy * static_cast<uint64_t>(context_.width));
      const Chunk chunk{.index = ir_.CreateAdd(i, offset)};
      for (uint32_t k = 0; k < inputs_.size(); ++k) {
        if (!is_inner(k)) continue;
        program_.set_argument(k, inputs_[k].access == Access::lanes
                                     ? registers[output_of(k)][copy]
                                     : streams_.load(inputs_[k], chunk));
      }
      emit_inner(chunk);
      for (std::size_t k = 0; k < outputs_.size(); ++k) {
        joined[k].push_back(program_.value(stage_.outputs[k].value));
      }
    }
    finish_registers(*i, registers, joined, {whole, loop, after, lanes});
    return whole;
  }

  /// The lanes that the copy of the program numbered `copy` accumulates.
  Chunk lanes_of_copy(std::size_t copy) {
    return {.index = ir_.getInt64(copy * static_cast<uint64_t>(context_.width))};
  }

  struct LanesLoop {
    Value* end;
    llvm::BasicBlock *first, *after;
    int lanes;
  };

  /// Closes the loop and puts the accumulators where the rest of the points finds them.
  void finish_registers(llvm::PHINode& i, const std::vector<std::vector<llvm::PHINode*>>& registers,
                        const std::vector<std::vector<Value*>>& joined, const LanesLoop& loop) {
    llvm::BasicBlock* const last = ir_.GetInsertBlock();
    llvm::BasicBlock* const keep = new_block(ir_, "keep");
    Value* const next = ir_.CreateAdd(&i, ir_.getInt64(static_cast<uint64_t>(loop.lanes)));
    i.addIncoming(next, last);
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      for (std::size_t copy = 0; copy < joined[k].size(); ++copy) {
        registers[k][copy]->addIncoming(joined[k][copy], last);
      }
    }
    ir_.CreateCondBr(ir_.CreateICmpSLT(next, loop.end), loop.first, keep);
    ir_.SetInsertPoint(keep);
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      for (std::size_t copy = 0; copy < joined[k].size(); ++copy) {
        streams_.store(outputs_[k], lanes_of_copy(copy), joined[k][copy]);
      }
    }
    ir_.CreateBr(loop.after);
    ir_.SetInsertPoint(loop.after);
  }

  const Kernel& kernel_;
  LoweredStage stage_;
  llvm::IRBuilder<llvm::NoFolder> ir_;
  EmitContext context_;
  StreamEmitter streams_;
  ProgramEmitter program_;
  Value* call_ = nullptr;
  std::vector<Stream> inputs_, outputs_;
  std::vector<bool> is_inner_;  ///< per input: see is_inner
  Chunk chunk_;                 ///< that the program's inner part is emitted for
  std::map<std::pair<Place, uint16_t>, Value*> lanes_;
  std::vector<Value*> runs_;  ///< per output with runs: the lanes of those that ended
};

}  // namespace

void emit_stage(llvm::Module& module, const Target& target, const Kernel& kernel,
                const Stage& stage, const std::string& name) {
  StageEmitter(module, target, kernel, stage).emit(name);
}

}  // namespace nitinol::cpu
