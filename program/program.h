// Program: a graph as steps that run on one device, with a place in memory for every value.
//
// It knows no Variables, arguments or locks. Who runs it says where its inputs lie (running.h), and
// may have it store outputs where something has lain that nobody needs any more. Any number of
// threads may run one at once.
#pragma once

#include "core/backend.h"
#include "core/graph.h"
#include "core/launch.h"
#include "core/profiling.h"
#include "core/scalar_value.h"
#include "program/kept_packing.h"
#include "program/report.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace nitinol::program {

/// Where a value is during a run.
struct Place {
  enum class Kind : uint8_t {
    none,
    input,     ///< graph input `index`
    constant,  ///< the graph's constant
    arena,     ///< temporary, at byte `offset` of the run's arena
    output,    ///< Program::memory number `index`
  };
  Kind kind = Kind::none;
  int index = 0;
  std::size_t offset = 0;
  bool takes_over = false;  ///< arena: from a value that its step is the last to read
};

/// Memory that is made for outputs.
struct OutputMemory {
  Value value = 0;
  Spec spec;
  Strides strides;
  std::size_t bytes = 0;
  int donation = -1;  ///< the one that may take its place, or -1
};

/// What a graph output is: a view of the memory of `base`.
struct Output {
  Value base = 0;
  bool is_base = true;  ///< the very tensor, not a view of it
  Spec spec;
  Strides strides;
  int64_t offset = 0;
};

/// Memory that an output may be stored to, as who runs the program needs what is there no more.
struct Donation {
  std::size_t output = 0;  ///< of the graph
  int input = -1;          ///< the graph input that lies there, or -1: the program does not read it
};

/// An operand that has memory: the step's operand number `operand`.
struct MemoryOperand {
  std::size_t operand = 0;
  Value value = 0;
  int64_t byte_offset = 0;
};

/// A Scalar that goes into a scalar slot of a kernel: the run's number `scalar`.
struct ScalarOperand {
  std::size_t operand = 0;
  int scalar = 0;
  DType dtype = f64;
};

/// One launch, or one of several that are launched at once.
struct ProgramStep {
  std::shared_ptr<const Executable> executable;
  std::shared_ptr<const Kernel>
      kernel;  ///< that it was made from, of the first of a launch; or null
  std::unique_ptr<const Executable> specialised;  ///< the same for launches of these sizes, or null
  /// A product whose operand b is kept packed: what runs while the value `packed_b` is there.
  std::shared_ptr<const Executable> if_packed;
  Value packed_b = 0;
  std::vector<StepOperand> operands;
  std::vector<int64_t> sizes, strides, offsets;
  std::vector<uint64_t> scalars;
  std::vector<ScalarOperand> run_scalars;
  /// may_fail: a check inside; then nothing that the run has stored counts. ordered: steps come in
  /// the graph's order, and none that may fail after one.
  Effect effect = Effect::none;
  /// The values whose memory it touches. What it stores over counts as written.
  std::vector<Value> reads, writes;
  bool overwrites = false;            ///< memory that was donated: only after all that can fail
  bool may_be_needless = false;       ///< it copies, perhaps, elements to where they are
  std::vector<MemoryOperand> memory;  ///< of `operands`
  Launch launch;                      ///< what is the same at each run; of the vectors above
  /// If it is begun and goes on beside others: before which step it is waited for. 0: it is
  /// launched.
  std::size_t until = 0;
  std::size_t together = 1;  ///< this step and those after it that are launched at once
};

class Replays;

struct Program {
  Graph graph;
  Backend* device = nullptr;  ///< where it runs
  int threads = 1;
  bool is_gated = false;  ///< steps that overwrite look at the checks themselves
  bool can_fail = false;
  bool has_ordered = false;  ///< steps that run only when it is known that nothing has failed
  /// Per value. Those from the graph's number of nodes on are operands that are packed.
  std::vector<Place> places;
  std::vector<std::size_t> packed_bytes;  ///< of these operands
  std::vector<ProgramStep> steps;
  std::vector<OutputMemory> memory;
  std::vector<Output> outputs;                     ///< per graph output
  std::vector<std::unique_ptr<KeptPacking>> kept;  ///< packed operands that outlive a run
  std::vector<std::size_t> numbers_in_memory;      ///< inputs that are numbers which a step loads
  std::vector<std::byte*> addresses;  ///< per value: of constants; others differ from run to run
  std::vector<Value> temporaries;     ///< what lies in the arena
  std::size_t arena_bytes = 0;
  std::shared_ptr<const profiling::Steps> described;  ///< for profiles
  /// How many steps come before the first that overwrites donated memory or is ordered: all that
  /// can fail.
  std::size_t safe_steps = 0;
  std::shared_ptr<Replays> replays;  ///< or null: the steps are launched at each run. The last
                                     ///< member: what it has noted is of the steps
};

/// How a Program is made.
struct Options {
  int threads = 1;
  /// Per graph input: which of a run's Scalars it is; -1: a tensor. Empty: all are tensors.
  std::vector<int> scalars = {};
  /// Per graph input: whether the next run may find the same there. Empty: none.
  std::vector<bool> stays = {};
  std::vector<Donation> donations = {};
  bool trims = true;  ///< convolutions whose last rows and columns nobody reads
  bool fuses = true;
  bool packs = true;        ///< operands of matrix products
  bool joins = true;        ///< launches of one kernel, side by side
  bool overlaps = true;     ///< collectives come early, and go on beside other steps
  bool replays = false;     ///< runs are one launch, where the device can note launches
  bool quick_code = false;  ///< where there is none: made quickly, and better while it runs
  std::shared_ptr<const std::vector<CallSite>> places = {};  ///< by origin, for profilers
};

/// The program that computes `graph`, whose constants lie on `device`. Null if the graph has what
/// neither a kernel nor a library computes: views that strides cannot express, reductions over axes
/// that are apart (jit's passes rewrite both), or what may fail after what is ordered. Throws
/// Error(compile) if code generation fails.
[[nodiscard]] std::shared_ptr<const Program> make_program(Graph graph, Backend& device,
                                                          const Options& options, Report& report);

/// Bytes of a tensor without gaps.
[[nodiscard]] std::size_t bytes_of(const Spec& spec);
/// Bits of a Scalar in the dtype of its slot.
[[nodiscard]] uint64_t bits_of(const Scalar& scalar, DType dtype);

}  // namespace nitinol::program
