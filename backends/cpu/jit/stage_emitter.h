// What is known of a stage while its code is written, and the parts of that code.
#pragma once

#include "backends/cpu/jit/lower.h"
#include "backends/cpu/jit/program.h"
#include "backends/cpu/jit/streams.h"
#include "core/kernel.h"

#include <cstddef>
#include <string>
#include <vector>

namespace nitinol::cpu {

/// One stage that is being emitted. Its parts refer to each other: it stays where it is.
struct StageEmitter {
  StageEmitter(llvm::IRBuilderBase& builder, llvm::Module& module, const Target& target,
               const Kernel& kernel, const Stage& stage);
  StageEmitter(const StageEmitter&) = delete;

  const Kernel& kernel;
  LoweredStage stage;
  llvm::IRBuilderBase& ir;
  EmitContext context;
  StreamEmitter streams;
  ProgramEmitter program;
  Pieces pieces;
  llvm::Value* call = nullptr;  ///< address of the StageCall
  std::vector<Stream> inputs, outputs;
  std::vector<bool> is_inner;  ///< per input: vectors are loaded before the program runs on them
  std::vector<llvm::Value*> runs;     ///< per output with runs: the lanes of those that ended
  std::vector<llvm::Value*> between;  ///< per place of `pieces`: an array, a strip long
};

// ---- the function and its arguments (stage_emitter.cpp)
// ------------------------------------------

/// Where the program is too long to run whole.
void split_program(StageEmitter& emitter);
void begin_function(StageEmitter& emitter, const std::string& name);
void make_streams(StageEmitter& emitter);
/// An 8-byte integer field of the StageCall, at offset `field`.
[[nodiscard]] llvm::Value* call_field(StageEmitter& emitter, std::size_t field);
/// Stores `element` as that of row `row` of what is finished of `output`.
void store_of_row(StageEmitter& emitter, const Output& output, llvm::Value* row,
                  llvm::Value* element);
/// One of the outputs whose lanes start anew in each run.
[[nodiscard]] bool has_runs(const StageEmitter& emitter, std::size_t output);

// ---- the loops (stage_code.cpp, stage_lanes.cpp) -----------------------------------------------

/// Vector `number` of a row or of lanes.
[[nodiscard]] Chunk whole_chunk(StageEmitter& emitter, std::size_t number);
/// Where the last whole group of `count` points, a power of two, from `first` on ends.
[[nodiscard]] llvm::Value* whole_groups(StageEmitter& emitter, llvm::Value* first,
                                        llvm::Value* last, int count);
/// The program's inner part on the points of `chunk`, whose inputs have been loaded.
void emit_inner(StageEmitter& emitter, const Chunk& chunk);
/// The points [first, last) with one copy of the program for whole and incomplete vectors.
void shared_loop(StageEmitter& emitter, llvm::Value* first, llvm::Value* last);
/// The points of row `outer`, accumulated in lanes that are joined in the end.
void accumulate_row(StageEmitter& emitter, llvm::Value* outer);

}  // namespace nitinol::cpu
