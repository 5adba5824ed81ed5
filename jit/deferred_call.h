// DeferredCall: a call by a Plan that has returned before its checks were made.
#pragma once

#include "core/deferred_check.h"
#include "core/place.h"
#include "core/scalar_value.h"
#include "core/variable.h"
#include "tracer/trace.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nitinol::jit {

/// A call that may be deferred: what tells its error when it has been.
struct Deferral {
  std::string function;
  std::shared_ptr<const tracer::Trace> trace;
  std::vector<Tensor> tensors;  ///< the arguments' leaves, as in the trace's inputs
  std::vector<Variable> variables;
  std::vector<Scalar> scalars;
  std::shared_ptr<std::atomic<uint64_t>> failures;  ///< counts the calls that failed
  CallSite site = {};
};

/// Of a call that may be deferred; `call` gets it if it is.
struct Deferring {
  Deferral made_with;
  Handle<DeferredCheck> call = {};
};

/// Its Variables get back what they held if a check of it, or of a call that it follows, fails; its
/// error is eager's own: of the first op of the trace that fails when they are run one by one.
class DeferredCall final : public DeferredCheck {
 public:
  DeferredCall(Backend& device, Handle<DeferredCheck> followed, Deferral made_with);

  /// How many Variables note_assigned() will be called for.
  void expect_assigned(std::size_t count) { assigned_.reserve(count); }
  /// For each Variable that the call assigns, when that has been done; its lock is held. `before`:
  /// its old value, and the call that had assigned that, if that may have failed.
  void note_assigned(const Variable& variable, const Tensor& before, Handle<DeferredCheck> earlier);

 private:
  struct Assigned {
    Variable variable;
    Tensor before;
    bool is_in_place = false;  ///< then no `before`: nothing has been written
    Handle<DeferredCheck> earlier;
  };

  void discard() noexcept override;
  [[nodiscard]] Error error(Status::Code code, int followed_by) override;
  void let_go() noexcept override;
  void give_back(const Variable& variable) noexcept;

  std::mutex mutex_;  ///< of made_with_
  Deferral made_with_;
  std::vector<Assigned> assigned_;
};

}  // namespace nitinol::jit
