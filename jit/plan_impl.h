// The parts of a Plan: shared by the planner, which makes them, and Plan::run, which follows them.
#pragma once

#include "core/backend.h"
#include "fusion/lowering.h"
#include "jit/kept_packing.h"
#include "jit/plan.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace nitinol::jit {

/// Memory of a value during a call.
struct BufferPlan {
  enum class Place : uint8_t {
    none,
    input,     ///< the argument or Variable that graph input `index` stands for
    constant,  ///< the graph's constant
    arena,     ///< temporary, at byte `offset` of the call's arena
    output,    ///< fresh tensor number `index`, for results and Variables
  };
  Place place = Place::none;
  int index = 0;
  std::size_t offset = 0;
};

/// A tensor that is made for a call's result or a Variable's new value.
struct OutputPlan {
  Value value = 0;
  Spec spec;
  Strides strides;
  std::size_t bytes = 0;
  int donor = -1;  ///< the update whose Variable may lend its buffer, or -1
};

/// One that has memory: the step's operand number `operand`.
struct MemoryOperand {
  std::size_t operand = 0;
  Value value = 0;
  int64_t byte_offset = 0;
};

/// A Scalar argument that goes into a scalar slot of a kernel.
struct ScalarPlan {
  std::size_t operand = 0;
  int leaf = 0;
  DType dtype = f64;
};

struct StepPlan {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<const Executable> specialised;  ///< the same for launches of these sizes, or null
  /// A product whose operand b is kept packed: what runs while the value `packed_b` is there.
  std::shared_ptr<const Executable> if_packed;
  Value packed_b = 0;
  std::vector<OperandPlan> operands;
  std::vector<int64_t> sizes, strides, offsets;
  std::vector<uint64_t> scalars;
  std::vector<ScalarPlan> call_scalars;
  std::vector<MemoryOperand> memory;  ///< of `operands`
  Launch launch;                      ///< what is the same at each call; of the vectors above
  bool can_fail = false;
  std::size_t together = 1;  ///< this step and those after it that are launched at once
};

/// What a graph output is: a view of the memory of `base`.
struct ResultPlan {
  Value base = 0;
  bool is_base = true;       ///< the very tensor, not a view of it
  bool is_argument = false;  ///< the very argument, with all that hangs on it
  Spec spec;
  Strides strides;
  int64_t offset = 0;
};

/// The new value of a Variable.
struct UpdatePlan {
  tracer::TraceInput variable;
  ResultPlan result;
  bool is_in_place = false;  ///< may go into the Variable's own buffer
  int overwritten = -1;      ///< graph input that is read from that buffer, or -1: nothing reads it
};

struct PlanImpl {
  Backend* device = nullptr;  ///< where it runs
  std::vector<tracer::TraceInput> inputs;
  std::vector<std::size_t> scalars_in_memory;  ///< inputs that are numbers which a step loads
  /// Per value. Those from the graph's number of nodes on are operands that are packed.
  std::vector<BufferPlan> buffers;
  std::vector<std::unique_ptr<KeptPacking>> kept;  ///< those of these that outlive a call
  std::vector<StepPlan> steps;
  std::vector<OutputPlan> outputs;
  std::vector<std::byte*> addresses;  ///< per value: of constants; others differ from call to call
  std::vector<Value> temporaries;     ///< what lies in the arena
  std::size_t arena_bytes = 0;
  std::vector<ResultPlan> results;
  std::vector<UpdatePlan> updates;
  std::vector<tracer::TraceInput> empty, cleared;  ///< see tracer::Trace
  std::vector<tracer::TraceInput> read;            ///< Variables whose values a call reads
  int threads = 1;
  bool has_updates = false;  ///< of Variables: a call ends by a commit
  bool is_plain = true;      ///< nothing is kept, and no call goes on when it has returned
  bool has_checks = false;   ///< a launch can fail
  bool is_gated = false;     ///< steps that overwrite look at the checks themselves
  bool may_defer = false;    ///< a call may return before its checks are made
  bool may_follow = false;   ///< without checks: what it gives fails if what it takes has failed
  /// The first step that overwrites a Variable's buffer. All that can fail comes before.
  std::size_t first_overwrite = SIZE_MAX;
};

/// Bits of a Scalar argument in the dtype of its slot. (plan.cpp)
[[nodiscard]] uint64_t bits_of(const Scalar& scalar, DType dtype);

/// Notes what is the same at every call, once constants and temporaries are placed. (plan.cpp)
void note_addresses(const Graph& graph, PlanImpl& plan);

}  // namespace nitinol::jit
