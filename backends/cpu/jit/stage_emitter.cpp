#include "backends/cpu/jit/stage_emitter.h"

#include "backends/host/stage.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <utility>

namespace nitinol::cpu {
namespace {

using host::StageCall;
using llvm::Value;

std::vector<Depth> depths_of(const std::vector<Input>& inputs) {
  std::vector<Depth> depths;
  for (const Input& input : inputs) {
    depths.push_back(input.access == Access::per_call    ? Depth::call
                     : input.access == Access::per_outer ? Depth::outer
                                                         : Depth::inner);
  }
  return depths;
}

Value* load_at(StageEmitter& emitter, Value* base, uint64_t bytes, llvm::Type* type) {
  Value* const place =
      emitter.ir.CreateGEP(emitter.ir.getInt8Ty(), base, emitter.ir.getInt64(bytes));
  return emitter.ir.CreateAlignedLoad(type, place, llvm::Align(8));
}

/// Entry `index` of an array that a field of the StageCall points to.
Value* array_entry(StageEmitter& emitter, std::size_t field, uint16_t index, llvm::Type* type) {
  Value* const array = load_at(emitter, emitter.call, field, emitter.ir.getPtrTy());
  return load_at(emitter, array, uint64_t{index} * 8, type);
}

/// Where a StageCall has the arrays over rows.
std::size_t array_of(Place place) {
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

/// An array on the stack.
Value* new_lanes(StageEmitter& emitter, ScalarType type, int count) {
  llvm::AllocaInst* const array = emitter.ir.CreateAlloca(
      llvm::ArrayType::get(element_type(emitter.context, type), static_cast<uint64_t>(count)));
  array->setAlignment(llvm::Align(64));
  return array;
}

/// The lanes of one row, the same for the input and the output.
using LanesOfRow = std::map<std::pair<Place, uint16_t>, Value*>;

/// The start and steps of an input or output.
template <class InputOrOutput>
Stream make_stream(StageEmitter& emitter, const InputOrOutput& io, LanesOfRow& lanes) {
  llvm::IRBuilderBase& ir = emitter.ir;
  Stream stream{.access = io.access, .type = io.type, .is_half = io.is_half};
  stream.is_counted = io.place == Place::position || io.place == Place::element_index;
  if (io.access == Access::lanes) stream.lanes = lanes_of(emitter.kernel.reductions[io.index].type);
  switch (io.place) {
    case Place::operand:
    case Place::position:
      stream.start = array_entry(
          emitter, offsetof(StageCall, pointers), io.index,
          stream.is_counted ? ir.getInt64Ty() : static_cast<llvm::Type*>(ir.getPtrTy()));
      stream.outer_step =
          array_entry(emitter, offsetof(StageCall, outer), io.index, ir.getInt64Ty());
      if (io.access == Access::strided)
        stream.inner_step =
            array_entry(emitter, offsetof(StageCall, inner), io.index, ir.getInt64Ty());
      break;
    case Place::scalar: {
      Value* const scalars =
          load_at(emitter, emitter.call, offsetof(StageCall, scalars), ir.getPtrTy());
      stream.start = ir.CreateGEP(ir.getInt8Ty(), scalars, ir.getInt64(uint64_t{io.index} * 8));
      break;
    }
    case Place::result:
    case Place::row_value:
    case Place::accumulator:
    case Place::accumulator_position:
      if (io.access == Access::lanes) {
        Value*& array = lanes[{io.place, io.index}];
        if (array == nullptr) array = new_lanes(emitter, io.type, stream.lanes);
        stream.start = array;
      } else {
        stream.start = array_entry(emitter, array_of(io.place), io.index, ir.getPtrTy());
      }
      if (io.access == Access::per_outer)
        stream.outer_step = ir.getInt64(static_cast<uint64_t>(size_of(io.type)));
      else if (io.place == Place::accumulator && emitter.kernel.order == Order::turned &&
               host::keeps_lanes(emitter.kernel.reductions[io.index]))
        stream.outer_step = ir.CreateMul(call_field(emitter, offsetof(StageCall, inner_size)),
                                         ir.getInt64(static_cast<uint64_t>(size_of(io.type))));
      break;
    case Place::status:
      emitter.streams.begin_check(stream);
      break;
    case Place::element_index:
      stream.start = call_field(emitter, offsetof(StageCall, position));
      (io.access == Access::strided ? stream.inner_step : stream.outer_step) = ir.getInt64(1);
      break;
  }
  stream.row = stream.start;
  return stream;
}

}  // namespace

StageEmitter::StageEmitter(llvm::IRBuilderBase& builder, llvm::Module& module, const Target& target,
                           const Kernel& its_kernel, const Stage& its_stage)
    : kernel(its_kernel),
      stage(lower(kernel, its_stage, target)),
      ir(builder),
      context{ir, module, target, vector_width(stage, kernel, target.vector_bytes)},
      streams(context),
      program(context, stage.program, depths_of(stage.inputs)) {}

void split_program(StageEmitter& emitter) {
  WholeProgram whole = emitter.program.whole();
  for (const Input& input : emitter.stage.inputs) {
    whole.is_accumulator.push_back(input.place == Place::accumulator ||
                                   input.place == Place::accumulator_position);
  }
  for (const Output& output : emitter.stage.outputs) whole.results.push_back(output.value);
  emitter.pieces = split(whole);
}

void begin_function(StageEmitter& emitter, const std::string& name) {
  llvm::IRBuilderBase& ir = emitter.ir;
  llvm::Type* const pointer = ir.getPtrTy();
  auto* const type = llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer}, false);
  auto* const function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name,
                                                emitter.context.module);
  function->setDoesNotThrow();
  emitter.call = function->getArg(1);
  ir.SetInsertPoint(llvm::BasicBlock::Create(ir.getContext(), "entry", function));
}

void make_streams(StageEmitter& emitter) {
  LanesOfRow lanes;
  for (const Input& input : emitter.stage.inputs) {
    emitter.inputs.push_back(make_stream(emitter, input, lanes));
    emitter.is_inner.push_back(!input.is_looked_up && input.access != Access::per_call &&
                               input.access != Access::per_outer);
  }
  for (const auto& [k, distance] : emitter.program.loads_by_row()) emitter.is_inner[k] = true;
  for (const Output& output : emitter.stage.outputs)
    emitter.outputs.push_back(make_stream(emitter, output, lanes));
  for (std::size_t k = 0; k < emitter.outputs.size(); ++k) {
    const Stream& stream = emitter.outputs[k];
    const bool accumulates = emitter.stage.has_lanes && has_runs(emitter, k);
    emitter.runs.push_back(accumulates ? new_lanes(emitter, stream.type, stream.lanes) : nullptr);
  }
  for (const uint8_t bytes : emitter.pieces.places)
    emitter.between.push_back(
        new_lanes(emitter, ScalarType::u8, bytes * strip_vectors * emitter.context.width));
}

Value* call_field(StageEmitter& emitter, std::size_t field) {
  return load_at(emitter, emitter.call, field, emitter.ir.getInt64Ty());
}

void store_of_row(StageEmitter& emitter, const Output& output, Value* row, Value* element) {
  Value* const array =
      array_entry(emitter, array_of(output.place), output.index, emitter.ir.getPtrTy());
  emitter.ir.CreateAlignedStore(element, emitter.ir.CreateGEP(element->getType(), array, row),
                                llvm::Align(static_cast<uint64_t>(size_of(output.type))));
}

bool has_runs(const StageEmitter& emitter, std::size_t output) {
  const Output& of = emitter.stage.outputs[output];
  return of.place == Place::accumulator && depends_on_order(emitter.kernel.reductions[of.index]);
}

}  // namespace nitinol::cpu
