// ProgramEmitter: a scalar program as vector code, what is uniform outside the loops.
#pragma once

#include "backends/cpu/jit/instruction.h"
#include "backends/cpu/jit/pieces.h"
#include "core/scalar.h"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace llvm {
class BasicBlock;
}

namespace nitinol::cpu {

/// The loop that a value depends on; a value is computed just inside that loop.
enum class Depth : uint8_t { call, outer, inner };

/// Emits a program in up to three parts, each as often as needed (a loop body and its tail).
class ProgramEmitter {
 public:
  /// Emits ScalarOp::load number k: the elements so far (a vector of i64) from the present points.
  using EmitLoad = std::function<llvm::Value*(uint32_t k, llvm::Value* distances)>;

  /// argument_depths[k]: where argument k, or what `load` number k reads, comes from.
  ProgramEmitter(const EmitContext& context, const ScalarProgram& program,
                 const std::vector<Depth>& argument_depths);

  /// The loads of the inner loop whose distance is the same along it, by number and the instruction
  /// that computes the distance. Number k is argument k instead.
  [[nodiscard]] std::vector<std::pair<uint32_t, uint32_t>> loads_by_row() const;

  /// Argument k for the code emitted from now on: a vector.
  void set_argument(uint32_t k, llvm::Value* value) { arguments_[k] = value; }
  /// Emits the instructions of that depth at the builder's place, which if_any may move to
  /// another block. `load` emits the loads among them.
  void emit(Depth depth, const EmitLoad& load = {});
  /// The vector that instruction `id` computed last.
  [[nodiscard]] llvm::Value* value(uint32_t id);
  /// Instructions in the inner loop.
  [[nodiscard]] int inner_size() const;
  /// What split() asks of a program.
  [[nodiscard]] WholeProgram whole() const;
  /// The inner instructions of piece `number` alone. `set_value`s come before.
  void emit_piece(const Pieces& pieces, uint16_t number, const EmitLoad& load);
  /// What instruction `id` computed, taken from memory.
  void set_value(uint32_t id, llvm::Value* value) { values_[id] = value; }

 private:
  /// One if_any that is being emitted.
  struct Branch {
    llvm::BasicBlock* fast_block;
    llvm::BasicBlock* merge_block;
    // At most one, and none if all lanes agree.
    llvm::Value* condition = nullptr;
    llvm::Value* unless = nullptr;
  };
  [[nodiscard]] bool loads_by_row(uint32_t id) const;
  [[nodiscard]] bool is_computed(std::size_t id) const;
  void emit(std::size_t id, const EmitLoad& load);
  void find_depths(const std::vector<Depth>& argument_depths);
  /// The depths of instructions [begin, end], an if_any that goes to depth `region`.
  void place_region(std::size_t begin, std::size_t end, Depth region);
  /// Bits that tell what the conditions of that depth are, for the branches of deeper loops.
  void answer_uniform_conditions(Depth depth);
  void begin_if(const ScalarInstr& instr);
  llvm::Value* end_if(const ScalarInstr& instr);

  EmitContext context_;
  const ScalarProgram& program_;
  std::vector<Depth> depths_;
  std::vector<llvm::Value*> values_;
  std::vector<llvm::Value*> answers_;  ///< of uniform conditions
  std::vector<llvm::Value*> arguments_;
  std::vector<Branch> branches_;
};

}  // namespace nitinol::cpu
