#include "jit/compiled_function.h"

#include "core/autocast.h"
#include "core/nan_check.h"
#include "jit/dispatcher.h"

namespace nitinol::jit {
namespace {

/// f() in the scopes that the options ask for.
template <class F>
[[gnu::noinline]] void scoped(const std::optional<DType>& dtype, bool checks_nan, const F& f) {
  std::optional<AutocastScope> autocast;
  std::optional<NanCheckScope> check;
  if (dtype) autocast.emplace(*dtype);
  if (checks_nan) check.emplace(NanCheck::nan);
  f();
}

}  // namespace

CompiledFunction::CompiledFunction(CompileOptions options, bool is_const)
    : autocast_(options.autocast),
      check_nan_(options.check_nan),
      has_scope_(options.autocast || options.check_nan),
      dispatcher_(std::make_unique<Dispatcher>(std::move(options), is_const)) {}

CompiledFunction::~CompiledFunction() = default;

void CompiledFunction::call(const Leaves& leaves, Caller& caller) {
  if (!has_scope_) [[likely]]
    return dispatcher_->call(leaves, caller);
  scoped(autocast_, check_nan_, [&] { dispatcher_->call(leaves, caller); });
}

void CompiledFunction::call_eagerly(const Leaves& leaves, Caller& caller) {
  if (!has_scope_) [[likely]]
    return dispatcher_->call_eagerly(leaves, caller);
  scoped(autocast_, check_nan_, [&] { dispatcher_->call_eagerly(leaves, caller); });
}

void CompiledFunction::call_inlined(Caller& caller) {
  if (!has_scope_) [[likely]]
    return dispatcher_->call_inlined(caller);
  scoped(autocast_, check_nan_, [&] { dispatcher_->call_inlined(caller); });
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
