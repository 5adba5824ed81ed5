#include "backends/cpu/jit/stage_draft.h"

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

Value* load_at(StageDraft& draft, Value* base, uint64_t bytes, llvm::Type* type) {
  Value* const place = draft.ir.CreateGEP(draft.ir.getInt8Ty(), base, draft.ir.getInt64(bytes));
  return draft.ir.CreateAlignedLoad(type, place, llvm::Align(8));
}

/// Entry `index` of an array that a field of the StageCall points to.
Value* array_entry(StageDraft& draft, std::size_t field, uint16_t index, llvm::Type* type) {
  Value* const array = load_at(draft, draft.call, field, draft.ir.getPtrTy());
  return load_at(draft, array, uint64_t{index} * 8, type);
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
Value* new_lanes(StageDraft& draft, ScalarType type, int count) {
  llvm::AllocaInst* const array = draft.ir.CreateAlloca(
      llvm::ArrayType::get(element_type(draft.context, type), static_cast<uint64_t>(count)));
  array->setAlignment(llvm::Align(64));
  return array;
}

/// The lanes of one row, the same for the input and the output.
using LanesOfRow = std::map<std::pair<Place, uint16_t>, Value*>;

/// The start and steps of an input or output.
template <class InputOrOutput>
Stream make_stream(StageDraft& draft, const InputOrOutput& io, LanesOfRow& lanes) {
  llvm::IRBuilderBase& ir = draft.ir;
  Stream stream{.access = io.access, .type = io.type, .is_half = io.is_half};
  stream.is_counted = io.place == Place::position || io.place == Place::element_index;
  if (io.access == Access::lanes) stream.lanes = lanes_of(draft.kernel.reductions[io.index].type);
  switch (io.place) {
    case Place::operand:
    case Place::position:
      stream.start = array_entry(
          draft, offsetof(StageCall, pointers), io.index,
          stream.is_counted ? ir.getInt64Ty() : static_cast<llvm::Type*>(ir.getPtrTy()));
      stream.outer_step = array_entry(draft, offsetof(StageCall, outer), io.index, ir.getInt64Ty());
      if (io.access == Access::strided)
        stream.inner_step =
            array_entry(draft, offsetof(StageCall, inner), io.index, ir.getInt64Ty());
      break;
    case Place::scalar: {
      Value* const scalars =
          load_at(draft, draft.call, offsetof(StageCall, scalars), ir.getPtrTy());
      stream.start = ir.CreateGEP(ir.getInt8Ty(), scalars, ir.getInt64(uint64_t{io.index} * 8));
      break;
    }
    case Place::result:
    case Place::row_value:
    case Place::accumulator:
    case Place::accumulator_position:
      if (io.access == Access::lanes) {
        Value*& array = lanes[{io.place, io.index}];
        if (array == nullptr) array = new_lanes(draft, io.type, stream.lanes);
        stream.start = array;
      } else {
        stream.start = array_entry(draft, array_of(io.place), io.index, ir.getPtrTy());
      }
      if (io.access == Access::per_outer)
        stream.outer_step = ir.getInt64(static_cast<uint64_t>(size_of(io.type)));
      else if (io.place == Place::accumulator && draft.kernel.order == Order::turned &&
               host::keeps_lanes(draft.kernel.reductions[io.index]))
        stream.outer_step = ir.CreateMul(call_field(draft, offsetof(StageCall, inner_size)),
                                         ir.getInt64(static_cast<uint64_t>(size_of(io.type))));
      break;
    case Place::status:
      draft.streams.begin_check(stream);
      break;
    case Place::element_index:
      stream.start = call_field(draft, offsetof(StageCall, position));
      (io.access == Access::strided ? stream.inner_step : stream.outer_step) = ir.getInt64(1);
      break;
  }
  stream.row = stream.start;
  return stream;
}

}  // namespace

StageDraft::StageDraft(llvm::IRBuilderBase& builder, llvm::Module& module, const Target& target,
                       const Kernel& its_kernel, const Stage& its_stage)
    : kernel(its_kernel),
      stage(lower(kernel, its_stage, target)),
      ir(builder),
      context{ir, module, target, vector_width(stage, kernel, target.vector_bytes)},
      streams(context),
      program(context, stage.program, depths_of(stage.inputs)) {}

void begin_function(StageDraft& draft, const std::string& name) {
  llvm::IRBuilderBase& ir = draft.ir;
  llvm::Type* const pointer = ir.getPtrTy();
  auto* const type = llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer}, false);
  auto* const function =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, draft.context.module);
  function->setDoesNotThrow();
  draft.call = function->getArg(1);
  ir.SetInsertPoint(llvm::BasicBlock::Create(ir.getContext(), "entry", function));
}

void make_streams(StageDraft& draft) {
  LanesOfRow lanes;
  for (const Input& input : draft.stage.inputs) {
    draft.inputs.push_back(make_stream(draft, input, lanes));
    draft.is_inner.push_back(!input.is_looked_up && input.access != Access::per_call &&
                             input.access != Access::per_outer);
  }
  for (const auto& [k, distance] : draft.program.loads_by_row()) draft.is_inner[k] = true;
  for (const Output& output : draft.stage.outputs)
    draft.outputs.push_back(make_stream(draft, output, lanes));
  for (std::size_t k = 0; k < draft.outputs.size(); ++k) {
    const Stream& stream = draft.outputs[k];
    const bool accumulates = draft.stage.has_lanes && has_runs(draft, k);
    draft.runs.push_back(accumulates ? new_lanes(draft, stream.type, stream.lanes) : nullptr);
  }
}

Value* call_field(StageDraft& draft, std::size_t field) {
  return load_at(draft, draft.call, field, draft.ir.getInt64Ty());
}

void store_of_row(StageDraft& draft, const Output& output, Value* row, Value* element) {
  Value* const array =
      array_entry(draft, array_of(output.place), output.index, draft.ir.getPtrTy());
  draft.ir.CreateAlignedStore(element, draft.ir.CreateGEP(element->getType(), array, row),
                              llvm::Align(static_cast<uint64_t>(size_of(output.type))));
}

bool has_runs(const StageDraft& draft, std::size_t output) {
  const Output& of = draft.stage.outputs[output];
  return of.place == Place::accumulator && depends_on_order(draft.kernel.reductions[of.index]);
}

}  // namespace nitinol::cpu
