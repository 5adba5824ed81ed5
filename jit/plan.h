// Plan: what a call of a compiled function runs. Steps in order, with a memory plan.
#pragma once

#include "core/build_report.h"
#include "core/graph.h"
#include "core/scalar_value.h"
#include "core/variable.h"
#include "tracer/trace.h"

#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::jit {

struct Deferring;

/// One step as explain() shows it.
struct StepReport {
  std::string kind;                               ///< "kernel" or "library"
  std::vector<std::string> ops;                   ///< names of the operations it does
  std::size_t launches = 1;                       ///< how many times it is run side by side
  std::size_t bytes_read = 0, bytes_written = 0;  ///< at this signature's sizes, each operand once
  BuildReport build = {};
  bool was_cached = false;  ///< a kernel of this structure existed already
  std::string how = {};     ///< Executable::describe()
};

/// What making a Plan cost and gave, for explain().
struct PlanReport {
  std::vector<StepReport> steps;
  Device device;
  int waits = 0;  ///< of a call for what it has launched, at its end, for what its checks say
  bool is_deferred = false;  ///< who reads what a call gives waits for its checks
  double passes_s = 0, fusion_s = 0, prepare_s = 0, total_s = 0;
  std::size_t arena_bytes = 0;     ///< temporaries of one call
  std::size_t result_bytes = 0;    ///< what a call returns or assigns, in memory of its own
  std::size_t in_place_bytes = 0;  ///< what goes into the Variables' own buffers
  std::size_t kept_bytes = 0;      ///< packed operands that stay from call to call, if all do
  /// The most memory that a call takes beside its arguments, the Variables' values and kept_bytes.
  [[nodiscard]] std::size_t peak_bytes() const { return arena_bytes + result_bytes; }
  std::size_t kernels_generated = 0;
};

/// The leaves of one call's arguments.
struct CallInputs {
  std::span<const Tensor* const> tensors;
  std::span<const Variable* const> variables;
  std::span<const Scalar* const> scalars;
  /// If not empty, one per input of the trace: gets the values that the call reads of Variables.
  std::span<Tensor> read = {};
  /// If there is one, a call may return before its checks are made (jit/deferred_call.h).
  Deferring* deferring = nullptr;
};

struct PlanImpl;

class Plan {
 public:
  /// Compiles `trace`. Throws Error(compile) if code generation fails.
  explicit Plan(const tracer::Trace& trace, int threads);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Runs the steps and commits the Variables; `results`, result_count() of them, get the result
  /// tensors. When it is not `done`, nothing has changed and the caller must run the function
  /// eagerly (which, after a failed check, throws eager's own error).
  enum class Outcome : uint8_t {
    done,
    check_failed,    ///< a check inside a kernel: an index out of range, a division by zero
    layout_changed,  ///< a captured Variable holds a tensor with other strides than when it was
                     ///< recorded
  };
  [[nodiscard]] Outcome run(const CallInputs& inputs, std::span<Tensor> results) const;
  [[nodiscard]] std::size_t result_count() const { return result_count_; }

  [[nodiscard]] const PlanReport& report() const { return report_; }
  /// The graph after the passes.
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  PlanReport report_;
  std::unique_ptr<PlanImpl> impl_;
  std::size_t result_count_ = 0;
};

}  // namespace nitinol::jit

#pragma GCC visibility pop
