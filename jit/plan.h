// Plan: what a call of a compiled function runs. Steps in order, with a memory plan.
#pragma once

#include "core/graph.h"
#include "core/result_check.h"
#include "core/scalar_value.h"
#include "core/variable.h"
#include "program/report.h"
#include "tracer/trace.h"

#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::jit {

struct Deferring;

/// What a device needs for a step at least, whoever programs it: the longer of both.
struct Bound {
  double move_s = 0;     ///< for the bytes: as fast as it copies so many
  double compute_s = 0;  ///< for the operations: as fast as it multiplies and adds
  [[nodiscard]] double seconds() const { return move_s > compute_s ? move_s : compute_s; }
};

/// What making a Plan cost and gave, for explain(). Its functions are of what explain() has given:
/// that holds on to the Plan, and with it to constants of the function.
struct PlanReport : program::Report {
  Device device;
  int waits = 0;  ///< of a call for what it has launched, at its end, for what its checks say
  bool is_deferred = false;  ///< who reads what a call gives waits for its checks
  double passes_s = 0, prepare_s = 0, total_s = 0;

  /// Of each step; zeros where it is not known, as of a GPU. Measures the machine if nobody has, in
  /// a quarter of a second.
  [[nodiscard]] std::vector<Bound> bounds() const;
  /// The graph after the passes in the language of Graphviz, with a box for each step.
  [[nodiscard]] std::string to_dot() const;
  /// The kernel of a step, counted from 0 on: the loops and scalar instructions that code is made
  /// from. Empty if the step is a library's call.
  [[nodiscard]] std::string kernel_text(std::size_t step) const;
  /// The code of a step: LLVM IR and assembly, or CUDA C++; none of what was not generated. Takes
  /// about as long as generating it took.
  [[nodiscard]] std::vector<CodeText> code_texts(std::size_t step) const;
};

/// The leaves of one call's arguments.
struct CallInputs {
  std::span<const Tensor* const> tensors;
  std::span<const Variable* const> variables;
  std::span<const Scalar* const> scalars;
  /// Instead of scalars: the bits of each number, in the dtype of its input.
  std::span<const uint64_t> number_bits = {};
  /// If not empty, one per input of the trace: gets the values that the call reads of Variables.
  std::span<Tensor> read = {};
  /// One per replacement of the trace: what the result may be stored over if nobody else sees it,
  /// or null; empty: nothing.
  std::span<const Tensor* const> lent = {};
  /// Or null: which Variable's value a tensor is, of those of which the trace says that they are
  /// one.
  const tracer::ValueOf* value_of = nullptr;
  /// If there is one, a call may return before its checks are made (jit/deferred_call.h).
  Deferring* deferring = nullptr;
};

struct PlanImpl;

class Plan {
 public:
  struct Options {
    int threads = 1;
    bool quick_code = false;  ///< see CompileOptions
    /// nan, infinity: nothing is updated in place.
    ResultCheck check = ResultCheck::none;
    std::string name = {};  ///< the function's, for errors
    /// Beside what pass_options() says: passes to leave out.
    std::vector<std::string> left_out = {};
  };
  /// Compiles `trace`. Throws Error(compile) if code generation fails.
  Plan(const tracer::Trace& trace, const Options& options);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Runs the steps and commits the Variables; `results`, result_count() of them, get the result
  /// tensors. Under ResultCheck::shadow it throws Error(internal) if the ops give other bits one by
  /// one. When it is not `done`, nothing has changed and the caller must run the function
  /// eagerly (which, after a failed check, throws eager's own error).
  enum class Outcome : uint8_t {
    done,
    check_failed,    ///< a check inside a kernel: an index out of range, a division by zero
    not_finite,      ///< what is looked for (Options::check) is in a result or a new value
    layout_changed,  ///< a captured Variable holds a tensor with other strides than when it was
                     ///< recorded
  };
  [[nodiscard]] Outcome run(const CallInputs& inputs, std::span<Tensor> results) const;
  [[nodiscard]] std::size_t result_count() const { return result_count_; }
  /// Whether it runs ops that are ordered (Op::effect).
  [[nodiscard]] bool is_ordered() const { return is_ordered_; }

  [[nodiscard]] const PlanReport& report() const { return report_; }
  /// The graph after the passes.
  [[nodiscard]] const Graph& graph() const;
  [[nodiscard]] std::shared_ptr<const program::Program> program() const;

 private:
  PlanReport report_;
  std::unique_ptr<PlanImpl> impl_;
  std::size_t result_count_ = 0;
  bool is_ordered_ = false;
};

}  // namespace nitinol::jit

#pragma GCC visibility pop
