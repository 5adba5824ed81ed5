// NanCheck: results are looked through for NaN, or infinity too, and the op that made it is named.
#pragma once

#include "core/function_ref.h"
#include "core/observed.h"
#include "core/op.h"
#include "core/thread_settings.h"

#include <cstdint>
#include <string>

#pragma GCC visibility push(default)

namespace nitinol {

class CallSite;

/// What is looked for. An op that gives it, out of operands that have none, throws Error(value)
/// with element and operands. A compiled call is looked through for it at its end, before anything
/// is assigned; then it runs again as written, op by op, and the Error says where it came from.
enum class NanCheck : uint8_t {
  as_process,  ///< what NITINOL_CHECK says: a thread without a scope
  none,
  nan,
  infinity,  ///< and NaN
};

namespace thread_nan_check {
[[gnu::tls_model("initial-exec")]] extern constinit thread_local NanCheck check;
/// NITINOL_CHECK; none unless it is set.
extern NanCheck of_process;
}  // namespace thread_nan_check

/// What is looked for on this thread, without a look at core/thread_settings.h.
[[nodiscard]] inline NanCheck nan_check_as_set() {
  const NanCheck check = thread_nan_check::check;
  return check == NanCheck::as_process ? thread_nan_check::of_process : check;
}
[[nodiscard]] inline NanCheck nan_check() {
  bring_settings_up_to_date();
  return nan_check_as_set();
}
/// Sets it for this thread; returns what was set.
NanCheck set_nan_check(NanCheck check);

/// While it lives, this thread's results are looked through.
///
///     const NanCheckScope scope(NanCheck::nan);
///     train(model, data);  // Error: log: element [3, 7] of the result is nan ...
///
/// NITINOL_CHECK=nan (or infinity) is that for a whole process, but for where a scope says
/// otherwise.
class NanCheckScope {
 public:
  explicit NanCheckScope(NanCheck check = NanCheck::nan) : before_(check_before()) {
    set_nan_check(check);
  }
  ~NanCheckScope() { set_nan_check(before_); }
  NanCheckScope(const NanCheckScope&) = delete;
  NanCheckScope& operator=(const NanCheckScope&) = delete;

 private:
  static NanCheck check_before() {
    bring_settings_up_to_date();
    return thread_nan_check::check;
  }
  NanCheck before_;
};

/// Says which step of a compiled call does an op; empty if none does.
using StepOf = FunctionRef<std::string(const Op&)>;

/// While it lives, what this thread's check throws says that, too.
class CompiledCallScope {
 public:
  explicit CompiledCallScope(const StepOf& step_of);
  ~CompiledCallScope();
  CompiledCallScope(const CompiledCallScope&) = delete;
  CompiledCallScope& operator=(const CompiledCallScope&) = delete;
  /// What the innermost scope says of an op; empty without one.
  [[nodiscard]] static std::string step_of(const Op& op);

 private:
  const StepOf* outer_;
};

/// Throws that Error if the result has what `check` looks for and no operand has it. `place`: where
/// the op was applied, or null for here. (eager/ops/nan_check.cpp)
void check_result(NanCheck check, const Op& op, Inputs inputs, const Tensor& result,
                  const CallSite* place = nullptr);
/// Whether the tensor has it: a floating one that is in memory, or a number.
/// (eager/ops/nan_check.cpp)
[[nodiscard]] bool has_any(NanCheck check, const Tensor& tensor);

}  // namespace nitinol

#pragma GCC visibility pop
