// A program runs once per vector, but what it computes from scalars, constants and operands that
// do not move along the inner loop is the same every time. Each instruction gets the depth of the
// deepest loop that it depends on, and each loop emits the instructions of its own depth before it
// enters the next one.
//
// if_any is a branch: it goes where the deepest instruction of the whole region goes, because its
// blocks cannot be torn apart. What is uniform inside is computed before, whether it is needed or
// not: pow(x, 2) then asks a bit that it has, of each vector. The select that joins both sides
// stands in the slow block, so that the condition, which is expensive to keep in a register across
// blocks, is not needed after it; a uniform condition needs none.

#include "backends/cpu/jit/program.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <array>

namespace nitinol::cpu {
namespace {

bool is_free(ScalarOp op) {
  return op == ScalarOp::constant || op == ScalarOp::argument;
}

std::array<uint32_t, 3> operands_of(const ScalarInstr& instr) {
  return {instr.a, instr.b, instr.c};
}

}  // namespace

ProgramEmitter::ProgramEmitter(const EmitContext& context, const ScalarProgram& program,
                               const std::vector<Depth>& argument_depths)
    : context_(context),
      program_(program),
      depths_(program.instrs.size(), Depth::call),
      values_(program.instrs.size()),
      answers_(program.instrs.size()),
      arguments_(argument_depths.size()) {
  find_depths(argument_depths);
}

void ProgramEmitter::find_depths(const std::vector<Depth>& argument_depths) {
  std::size_t nesting = 0, begin = 0;
  Depth region = Depth::call;
  for (std::size_t i = 0; i < depths_.size(); ++i) {
    const ScalarInstr& instr = program_.instrs[i];
    const bool reads = instr.op == ScalarOp::argument || instr.op == ScalarOp::load;
    if (reads) depths_[i] = argument_depths[instr.imm];
    for (int k = 0; k < operand_count(instr.op); ++k) {
      depths_[i] = std::max(depths_[i], depths_[operands_of(instr)[static_cast<std::size_t>(k)]]);
    }
    if (instr.op == ScalarOp::begin_if && nesting++ == 0) {
      begin = i;
      region = Depth::call;
    }
    if (nesting == 0) continue;
    region = std::max(region, depths_[i]);
    if (instr.op == ScalarOp::end_if && --nesting == 0) place_region(begin, i, region);
  }
}

void ProgramEmitter::place_region(std::size_t begin, std::size_t end, Depth region) {
  for (std::size_t i = begin; i <= end; ++i) {
    const ScalarInstr& instr = program_.instrs[i];
    const bool is_branch = instr.op == ScalarOp::begin_if || instr.op == ScalarOp::end_if;
    if (is_branch || instr.op == ScalarOp::load) depths_[i] = region;
    for (int k = 0; k < operand_count(instr.op); ++k)
      depths_[i] = std::max(depths_[i], depths_[operands_of(instr)[static_cast<std::size_t>(k)]]);
  }
}

bool ProgramEmitter::loads_by_row(uint32_t id) const {
  const ScalarInstr& instr = program_.instrs[id];
  return instr.op == ScalarOp::load && depths_[id] == Depth::inner &&
         depths_[instr.a] != Depth::inner;
}

std::vector<std::pair<uint32_t, uint32_t>> ProgramEmitter::loads_by_row() const {
  std::vector<std::pair<uint32_t, uint32_t>> loads;
  for (uint32_t id = 0; id < depths_.size(); ++id) {
    if (!loads_by_row(id)) continue;
    const ScalarInstr& instr = program_.instrs[id];
    loads.emplace_back(static_cast<uint32_t>(instr.imm), instr.a);
  }
  return loads;
}

int ProgramEmitter::inner_size() const {
  int size = 0;
  for (std::size_t i = 0; i < depths_.size(); ++i) {
    if (depths_[i] == Depth::inner && !is_free(program_.instrs[i].op)) ++size;
  }
  return size;
}

/// By an instruction of its own, not loaded before.
bool ProgramEmitter::is_computed(std::size_t id) const {
  return !is_free(program_.instrs[id].op) && !loads_by_row(static_cast<uint32_t>(id));
}

WholeProgram ProgramEmitter::whole() const {
  WholeProgram whole = {
      .program = program_, .is_inner = {}, .is_input = {}, .is_accumulator = {}, .results = {}};
  for (std::size_t i = 0; i < depths_.size(); ++i) {
    const bool is_inner = depths_[i] == Depth::inner;
    whole.is_inner.push_back(is_inner && is_computed(i));
    whole.is_input.push_back(is_inner && !is_computed(i) &&
                             program_.instrs[i].op != ScalarOp::constant);
  }
  return whole;
}

llvm::Value* ProgramEmitter::value(uint32_t id) {
  const ScalarInstr& instr = program_.instrs[id];
  if (instr.op == ScalarOp::argument || loads_by_row(id)) return arguments_[instr.imm];
  if (values_[id] == nullptr && instr.op == ScalarOp::constant) {
    values_[id] = splat(context_, instr.type, instr.imm);
  }
  return values_[id];
}

void ProgramEmitter::emit(Depth depth, const EmitLoad& load) {
  for (std::size_t i = 0; i < depths_.size(); ++i) {
    if (depths_[i] == depth && is_computed(i)) emit(i, load);
  }
  if (depth != Depth::inner) answer_uniform_conditions(depth);
}

void ProgramEmitter::emit_piece(const Pieces& pieces, uint16_t number, const EmitLoad& load) {
  for (std::size_t i = 0; i < depths_.size(); ++i) {
    if (pieces.piece_of[i] == number && depths_[i] == Depth::inner && is_computed(i)) emit(i, load);
  }
}

void ProgramEmitter::emit(std::size_t id, const EmitLoad& load) {
  const ScalarInstr& instr = program_.instrs[id];
  if (instr.op == ScalarOp::load) {
    values_[id] = load(static_cast<uint32_t>(instr.imm), value(instr.a));
  } else if (instr.op == ScalarOp::begin_if) {
    begin_if(instr);
  } else if (instr.op == ScalarOp::end_if) {
    values_[id] = end_if(instr);
  } else {
    Operands operands{.type = program_.instrs[instr.a].type};
    const int count = operand_count(instr.op);
    for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
      operands.values[k] = value(operands_of(instr)[k]);
    }
    values_[id] = emit_instruction(context_, instr, operands);
  }
}

void ProgramEmitter::answer_uniform_conditions(Depth depth) {
  for (std::size_t i = 0; i < depths_.size(); ++i) {
    const ScalarInstr& instr = program_.instrs[i];
    const bool is_deeper = instr.op == ScalarOp::begin_if && depths_[i] != depth;
    if (!is_deeper || depths_[instr.a] != depth) continue;
    answers_[instr.a] = context_.ir.CreateExtractElement(value(instr.a), uint64_t{0});
  }
}

void ProgramEmitter::begin_if(const ScalarInstr& instr) {
  llvm::IRBuilderBase& ir = context_.ir;
  llvm::BasicBlock* const here = ir.GetInsertBlock();
  llvm::Function* const function = here->getParent();
  auto* const slow = llvm::BasicBlock::Create(ir.getContext(), "slow", function);
  auto* const merge = llvm::BasicBlock::Create(ir.getContext(), "merge", function);
  llvm::MDNode* const rarely = llvm::MDBuilder(ir.getContext()).createBranchWeights(1, 2000);
  llvm::MDNode* const weights = instr.imm == 0 ? rarely : nullptr;
  const ScalarInstr& condition = program_.instrs[instr.a];
  Branch branch = {.fast_block = here, .merge_block = merge};
  if (answers_[instr.a] != nullptr) {
    ir.CreateCondBr(answers_[instr.a], slow, merge, weights);
  } else if (context_.width == 1) {
    llvm::Value* const bit = ir.CreateExtractElement(value(instr.a), uint64_t{0});
    ir.CreateCondBr(bit, slow, merge, weights);
  } else if (condition.op == ScalarOp::bit_not) {  // unless all: one instruction tells either
    branch.unless = value(condition.a);
    llvm::MDNode* const mostly = llvm::MDBuilder(ir.getContext()).createBranchWeights(2000, 1);
    ir.CreateCondBr(ir.CreateAndReduce(branch.unless), merge, slow,
                    weights == nullptr ? nullptr : mostly);
  } else {
    branch.condition = value(instr.a);
    ir.CreateCondBr(ir.CreateOrReduce(branch.condition), slow, merge, weights);
  }
  branches_.push_back(branch);
  ir.SetInsertPoint(slow);
}

llvm::Value* ProgramEmitter::end_if(const ScalarInstr& instr) {
  llvm::IRBuilderBase& ir = context_.ir;
  const Branch branch = branches_.back();
  branches_.pop_back();
  llvm::Value* const fast = value(instr.a);
  llvm::Value* both = value(instr.b);
  if (branch.condition != nullptr) both = ir.CreateSelect(branch.condition, both, fast);
  if (branch.unless != nullptr) both = ir.CreateSelect(branch.unless, fast, both);
  llvm::BasicBlock* const slow = ir.GetInsertBlock();
  ir.CreateBr(branch.merge_block);
  ir.SetInsertPoint(branch.merge_block);
  llvm::PHINode* const joined = ir.CreatePHI(fast->getType(), 2);
  joined->addIncoming(fast, branch.fast_block);
  joined->addIncoming(both, slow);
  return joined;
}

}  // namespace nitinol::cpu
