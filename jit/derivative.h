// Derivative: a compiled function as one node of the tape, whose backward is compiled too.
//
// While a call is recorded, the tape that eager made is swept once more, on shapes only, into the
// same graph. The graph is then cut in two: what gives the results, and what gives the gradients
// from their seeds. Between them go inputs of the call, results, and values that are not cheap to
// compute again (products, reductions); elementwise work and views are repeated in the backward
// Plan, where they fuse with their readers.
#pragma once

#include "autograd/node.h"
#include "jit/leaves.h"
#include "jit/plan.h"
#include "tracer/recorder.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace nitinol::jit {

/// Notes in `recorder` how the gradients of `results` reach the tracked arguments and Variables.
/// `arguments` are the stand-ins. Does nothing if no result tracks gradients.
void record_backward(tracer::Recorder& recorder, std::span<const Tensor* const> results,
                     std::span<const Tensor> arguments);

/// The results whose tape is freed; null if there are none.
[[nodiscard]] std::shared_ptr<const std::vector<tracer::SpentResult>> spent_results(
    std::span<const Tensor* const> results, std::span<const Tensor> arguments);

/// Gives the results of a Plan what is left of their tape.
void link_spent(std::span<const tracer::SpentResult> spent, std::span<Tensor> results);

class Derivative {
 public:
  /// Of a trace with a Backward.
  Derivative(tracer::Trace whole, const Plan::Options& options);

  /// Whether a call must run eagerly, because its gradients will be differentiated again: a
  /// backward Plan cannot be.
  [[nodiscard]] bool needs_eager_tape(const Leaves& leaves) const;
  /// The trace of a call: its results, then the values that backward needs.
  [[nodiscard]] tracer::Trace forward() const;

  /// What a call holds for its backward.
  struct Held {
    std::vector<Tensor> kept;                      ///< inputs of the call that backward reads
    std::vector<Scalar> scalars;                   ///< the same
    autograd::OfInputs<Handle<TensorSlot>> nodes;  ///< of the inputs that gradients flow to
    autograd::OfInputs<Spec> specs;                ///< of the same
  };
  /// `read`: what forward()'s Plan has read of Variables, per input.
  [[nodiscard]] Held hold(const Leaves& leaves, std::span<const Tensor> read) const;
  /// Of forward().
  [[nodiscard]] std::size_t input_count() const {
    return whole_.inputs.size() - whole_.backward->results.size();
  }
  /// After the Plan ran: takes the saved values from the end of `results`, hangs a node on those of
  /// the others that track gradients, and returns these others.
  static std::span<Tensor> link(const std::shared_ptr<const Derivative>& derivative,
                                const std::string& name, Held held, std::span<Tensor> results);
  /// Of the backward Plan, if it has been made.
  [[nodiscard]] std::shared_ptr<const Plan> backward_plan() const;

 private:
  /// Which seeds are given and how they lie in memory, which library calls may depend on; and
  /// whether an input's gradients are added up in the Plan.
  struct Variant {
    uint64_t seeds = 0;
    bool is_summed = true;
    std::vector<std::vector<int64_t>> strides = {};  ///< of each seed; none of one that is missing
    friend auto operator<=>(const Variant&, const Variant&) = default;
  };
  struct Backward {
    std::vector<std::size_t> targets;  ///< of each result of the Plan
    std::unique_ptr<const Plan> plan;
  };

  std::vector<autograd::Contribution> run(std::span<const Tensor> kept,
                                          std::span<const Scalar> scalars,
                                          std::span<const Tensor> saved,
                                          const autograd::CustomCall& call) const;
  [[nodiscard]] std::shared_ptr<const Backward> backward(const Variant& variant) const;
  [[nodiscard]] tracer::Trace backward_trace(const Variant& variant,
                                             std::vector<std::size_t>& targets) const;
  tracer::Trace whole_;
  const Plan::Options options_;
  std::vector<tracer::TraceInput> targets_;  ///< the inputs that gradients flow to
  std::vector<std::size_t> part_targets_;    ///< per part: position in targets_
  std::vector<std::size_t> kept_;            ///< positions in whole_.inputs that backward reads
  std::vector<Value> saved_;                 ///< values of the forward part that backward reads
  mutable std::mutex mutex_;
  mutable std::map<Variant, std::shared_ptr<const Backward>> plans_;
};

}  // namespace nitinol::jit
