// ResultCheck: results are looked through for NaN or infinity, and the op that made it is named; or
// compiled calls are compared with what their ops give one by one.
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

/// What is checked of results.
enum class ResultCheck : uint8_t {
  as_process,  ///< what NITINOL_CHECK says: a thread without a scope
  none,
  /// An op that gives NaN, out of operands that have none, throws Error(value) with element and
  /// operands. A compiled call is looked through for it at its end, before anything is assigned;
  /// then it runs again as written, op by op, and the Error says where it came from.
  nan,
  infinity,  ///< the same, for NaN and infinity
  /// A compiled call also computes what was recorded op by op, as eager does, before any pass. If
  /// the bits differ, in any result or new value, Error(internal) says which pass, kernel or step
  /// is the cause, and where a program is that shows it; nothing is assigned then. Finds mistakes
  /// of this library (jit/shadow.h).
  shadow,
};

/// Whether elements are looked at for what they are.
[[nodiscard]] inline bool looks_at_elements(ResultCheck check) {
  return check == ResultCheck::nan || check == ResultCheck::infinity;
}

namespace thread_result_check {
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ResultCheck check;
/// NITINOL_CHECK; none unless it is set.
extern ResultCheck of_process;
}  // namespace thread_result_check

/// What is checked on this thread, without a look at core/thread_settings.h.
[[nodiscard]] inline ResultCheck result_check_as_set() {
  const ResultCheck check = thread_result_check::check;
  return check == ResultCheck::as_process ? thread_result_check::of_process : check;
}
[[nodiscard]] inline ResultCheck result_check() {
  bring_settings_up_to_date();
  return result_check_as_set();
}
/// Sets it for this thread; returns what was set.
ResultCheck set_result_check(ResultCheck check);

/// While it lives, this thread's results are checked so.
///
///     const ResultCheckScope scope(ResultCheck::nan);
///     train(model, data);  // Error: log: element [3, 7] of the result is nan ...
///
/// NITINOL_CHECK=nan (infinity, shadow) is that for a whole process, but for where a scope says
/// otherwise.
class ResultCheckScope {
 public:
  explicit ResultCheckScope(ResultCheck check) : before_(check_before()) {
    set_result_check(check);
  }
  ~ResultCheckScope() { set_result_check(before_); }
  ResultCheckScope(const ResultCheckScope&) = delete;
  ResultCheckScope& operator=(const ResultCheckScope&) = delete;

 private:
  static ResultCheck check_before() {
    bring_settings_up_to_date();
    return thread_result_check::check;
  }
  ResultCheck before_;
};

/// Whether NITINOL_CHECK asks for that of collectives, "ranks": whether ranks are at the same
/// lines.
[[nodiscard]] bool are_ranks_checked();

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
void check_result(ResultCheck check, const Op& op, Inputs inputs, const Tensor& result,
                  const CallSite* place = nullptr);
/// Whether the tensor has it: a floating one that is in memory, or a number.
/// (eager/ops/nan_check.cpp)
[[nodiscard]] bool has_any(ResultCheck check, const Tensor& tensor);

}  // namespace nitinol

#pragma GCC visibility pop
