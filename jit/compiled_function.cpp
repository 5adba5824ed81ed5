#include "jit/compiled_function.h"

#include "core/autocast.h"
#include "core/error.h"
#include "core/result_check.h"
#include "jit/dispatcher.h"

namespace nitinol::jit {
namespace {

/// f() in the scopes that the options ask for.
template <class F>
[[gnu::noinline]] void scoped(const std::optional<DType>& dtype, ResultCheck check, const F& f) {
  std::optional<AutocastScope> autocast;
  std::optional<ResultCheckScope> checked;
  if (dtype) autocast.emplace(*dtype);
  if (check != ResultCheck::as_process) checked.emplace(check);
  f();
}

ResultCheck check_of(const CompileOptions& options) {
  if (options.check_nan && options.shadow) {
    throw Error(ErrorKind::value, {.where = "compile",
                                   .what = "the options `check_nan` and `shadow`",
                                   .expected = "one of them",
                                   .got = "both",
                                   .fix = "Look for NaN first: compiled code gives eager's."});
  }
  if (options.shadow) return ResultCheck::shadow;
  return options.check_nan ? ResultCheck::nan : ResultCheck::as_process;
}

}  // namespace

CompiledFunction::CompiledFunction(CompileOptions options, bool is_const)
    : autocast_(options.autocast),
      check_(check_of(options)),
      has_scope_(options.autocast || check_ != ResultCheck::as_process),
      dispatcher_(std::make_unique<Dispatcher>(std::move(options), is_const)) {}

CompiledFunction::~CompiledFunction() = default;

void CompiledFunction::call(const Leaves& leaves, Caller& caller) {
  if (!has_scope_) [[likely]]
    return dispatcher_->call(leaves, caller);
  scoped(autocast_, check_, [&] { dispatcher_->call(leaves, caller); });
}

void CompiledFunction::call_eagerly(const Leaves& leaves, Caller& caller) {
  if (!has_scope_) [[likely]]
    return dispatcher_->call_eagerly(leaves, caller);
  scoped(autocast_, check_, [&] { dispatcher_->call_eagerly(leaves, caller); });
}

void CompiledFunction::call_inlined(Caller& caller) {
  if (!has_scope_) [[likely]]
    return dispatcher_->call_inlined(caller);
  scoped(autocast_, check_, [&] { dispatcher_->call_inlined(caller); });
}

void CompiledFunction::forget_ended() {
  dispatcher_->forget_ended();
}

Explanation CompiledFunction::explain() const {
  return dispatcher_->explain();
}

void CompiledFunction::set_stance(int stance) {
  dispatcher_->set_stance(stance);
}

}  // namespace nitinol::jit
