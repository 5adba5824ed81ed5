// ShadowCall: the op by op half of a compiled call under ResultCheck::shadow.
#pragma once

#include "jit/experiment.h"
#include "jit/plan.h"

#include <mutex>
#include <string>
#include <vector>

namespace nitinol::jit {

/// What a Plan keeps for it.
class Shadow {
 public:
  Shadow(const tracer::Trace& trace, const Plan::Options& options);

  [[nodiscard]] const tracer::Trace& trace() const { return trace_; }
  /// Throws Error(internal) with the cause, which is looked for once. `what`: the difference.
  /// `inputs`: of the call.
  [[noreturn]] void fail(const std::string& what, std::vector<Tensor> inputs) const;

 private:
  [[nodiscard]] std::string look_for_cause(std::vector<Tensor> inputs) const;

  tracer::Trace trace_;  ///< as it was recorded
  Plan::Options options_;
  std::vector<InPlace> in_place_;
  mutable std::mutex mutex_;
  mutable std::string found_;  ///< what look_for_cause() said
};

class ShadowCall {
 public:
  /// Computes the trace on the call's inputs, one for each of the graph's.
  ShadowCall(const Shadow& shadow, std::vector<Tensor> inputs);
  /// Throws Error(internal) unless the call is to give this.
  void expect(std::span<const Tensor> outputs) const;
  /// Throws Error(internal) unless a check is to fail.
  void expect_failure() const;

 private:
  const Shadow& shadow_;
  std::vector<Tensor> inputs_, outputs_;
  std::string failure_;  ///< of an op; empty: none has failed
};

}  // namespace nitinol::jit
